//! A_ens_planner: how the solutions are shared out, as long as that leads somewhere; then the next
//! way to combine them that was not tried.

use mle_star_agent::Reply;
use mle_star_search::models::MetricDirection;
use serde::Deserialize;

use crate::Playbook;
use crate::catalogue::{Catalogue, Piece, Shelf};
use crate::ideas::tag_of;
use crate::roles::ensembler::bodies;
use crate::script::Script;

#[derive(Deserialize)]
pub(crate) struct Input {
    solutions: Vec<String>,
    plans: Vec<String>,
    scores: Vec<Option<f64>>,
}

/// A way to combine solutions, and how much each of them counts where that can be chosen.
pub(crate) struct Way<'a> {
    pub(crate) piece: &'a Piece,
    pub(crate) shares: Vec<u32>,
}

/// No solution counts more often than this for every time that another does.
const MOST: u32 = 9;

pub(crate) fn answer(playbook: &Playbook, input: &Input) -> Reply {
    let catalogue = &playbook.catalogue;
    let tried: Vec<(Way<'_>, Option<f64>)> = input
        .plans
        .iter()
        .zip(&input.scores)
        .filter_map(|(plan, score)| Some((Way::of(plan, catalogue)?, *score)))
        .collect();
    let better = better_shares(&tried, playbook.direction);
    let mut others = catalogue.on(Shelf::Ensembles);
    let other = others.find(|piece| !tried.iter().any(|(way, _)| way.piece == *piece));
    let solutions: Vec<Script> = input.solutions.iter().map(|it| Script::parse(it)).collect();
    let next = better.or_else(|| other.map(|piece| Way::new(piece, bodies(&solutions).len())));
    Reply::text(next.map(|way| way.plan()).unwrap_or_default())
}

/// A step of a climb: from the best shares so far, one solution counts three times as much.
fn better_shares<'a>(
    tried: &[(Way<'a>, Option<f64>)],
    direction: MetricDirection,
) -> Option<Way<'a>> {
    let loss = |score: f64| match direction {
        MetricDirection::Maximize => -score,
        MetricDirection::Minimize => score,
    };
    let shared = tried.iter().filter(|(way, _)| way.piece.is_shared_out());
    let scored = shared.filter_map(|(way, score)| Some((way, loss((*score)?))));
    let (best, _) = scored.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (0..best.shares.len())
        .map(|favoured| Way { piece: best.piece, shares: leaning(&best.shares, favoured) })
        .filter(|way| way.shares.iter().all(|share| *share <= MOST))
        .find(|way| tried.iter().all(|(it, _)| it.piece != way.piece || it.shares != way.shares))
}

fn leaning(shares: &[u32], favoured: usize) -> Vec<u32> {
    let weigh = |(solution, share): (usize, &u32)| share * if solution == favoured { 3 } else { 1 };
    let shares: Vec<u32> = shares.iter().enumerate().map(weigh).collect();
    let all_thrice = shares.iter().all(|share| share % 3 == 0);
    shares.iter().map(|share| if all_thrice { share / 3 } else { *share }).collect()
}

impl<'a> Way<'a> {
    fn new(piece: &'a Piece, solutions: usize) -> Self {
        let shares = if piece.is_shared_out() { vec![1; solutions] } else { Vec::new() };
        Self { piece, shares }
    }

    /// What a plan of this role means.
    pub(crate) fn of(plan: &str, catalogue: &'a Catalogue) -> Option<Self> {
        let tag = tag_of(plan)?;
        let (tag, shares) = tag.split_once(' ').unwrap_or((tag, ""));
        let piece = catalogue.tagged(tag).filter(|piece| piece.shelf == Shelf::Ensembles)?;
        let shares = shares.split(':').filter_map(|share| share.parse().ok()).collect();
        Some(Self { piece, shares })
    }

    fn plan(&self) -> String {
        if self.shares.is_empty() {
            return self.piece.plan();
        }
        let shares: Vec<String> = self.shares.iter().map(u32::to_string).collect();
        let shares = shares.join(":");
        format!("{}, {shares} [{} {shares}]", self.piece.why, self.piece.tag())
    }
}
