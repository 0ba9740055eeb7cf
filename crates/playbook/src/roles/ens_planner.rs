//! A_ens_planner: the next way to combine solutions that was not tried.

use mle_star_agent::Reply;
use serde::Deserialize;

use crate::Playbook;
use crate::catalogue::{Piece, Shelf};
use crate::ideas::tag_of;

#[derive(Deserialize)]
pub(crate) struct Input {
    plans: Vec<String>,
}

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let tried: Vec<&str> = input.plans.iter().filter_map(|plan| tag_of(plan)).collect();
    let mut ways = playbook.catalogue.on(Shelf::Ensembles);
    let next = ways.find(|piece| !tried.contains(&piece.tag().as_str()));
    Reply::text(next.map(Piece::plan).unwrap_or_default())
}
