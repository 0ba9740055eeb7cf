//! Links: made, moved, and copied as links.
//!
//! What a command line writes is looked for on the disk as it is before the command runs. A link that
//! the command makes is not there yet, so only links that lead inside may be made. Where one leads to
//! a folder nearer to the border than it is itself, `..` behind it is another folder than its name
//! says, so that no other part of the command may use `..`. The meaning of a relative link depends on
//! where it lies: it must lead inside from where it is moved, too.

use std::path::{Path, PathBuf};

use super::Options;
use crate::place::{Cwd, Last, Place, tidy};
use crate::shell::{State, Walk};
use crate::text::{Piece, Text, Word};
use crate::{Denial, Judged};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// It leads on from where it lies.
    Symbolic,
    /// It is told from here, and made to lead on from where it lies.
    Relative,
    Hard,
}

/// More entries of a folder that is moved than this are not looked at.
const MOST_ENTRIES: usize = 5_000;

impl<'tree> Walk<'_, 'tree> {
    pub(super) fn link(&mut self, words: &[Word], state: &mut State<'tree>) -> Judged {
        let options = Options::read(words, "tS", &["--target-directory", "--suffix"]);
        let into = options.values(&["-t", "--target-directory"]).next().cloned();
        let kind = match options.has(&["-s", "--symbolic"]) {
            true if options.has(&["-r", "--relative"]) => Link::Relative,
            true => Link::Symbolic,
            false => Link::Hard,
        };
        let mut positional = options.positional;
        let name = match into {
            Some(folder) => folder,
            None if positional.len() > 1 => positional.pop().unwrap_or_else(Word::any),
            None => Word::literal("."),
        };
        self.write(&name, state, Last::Kept)?;
        self.check_ups(std::slice::from_ref(&name))?;
        for text in positional.iter().flat_map(|word| &word.texts) {
            self.may_link(text, &name, kind, state)?;
        }
        Ok(())
    }

    /// A link to outside would make outside look like inside.
    pub(super) fn may_link(
        &mut self,
        text: &Text,
        name: &Word,
        kind: Link,
        state: &State<'tree>,
    ) -> Judged {
        let [folder] = name.texts.as_slice() else {
            return Err(Denial::new("it cannot be told where the link would be"));
        };
        let is_absolute = text.prefix().starts_with('/');
        let ways = match kind {
            Link::Symbolic if !is_absolute => ways_from(folder, text),
            Link::Symbolic | Link::Relative | Link::Hard => vec![text.clone()],
        };
        let mut to_border = false;
        for way in &ways {
            let place = self.policy.place(way, &state.cwd, Last::Followed);
            to_border |= place == Place::Border;
            if !matches!(place, Place::Inside | Place::Border) {
                let reason = format_args!("{text} is outside; copy it instead of making a link");
                return Err(Denial::new(reason));
            }
        }
        if kind == Link::Hard {
            self.bounds.disk.make_link(folder, &state.cwd, false);
            return Ok(());
        }
        let leads_up = match kind {
            Link::Symbolic if !is_absolute => {
                let (up, down) = steps(text).ok_or_else(|| {
                    Denial::new(format_args!("it cannot be told where {text} leads; leave out .."))
                })?;
                down <= up
            }
            Link::Symbolic | Link::Relative | Link::Hard => {
                let is_folder = self.bounds.disk.may_be_folder(folder, &state.cwd);
                let lies = depth(folder, &state.cwd).map(|it| it + usize::from(is_folder));
                depth(text, &state.cwd).zip(lies).is_none_or(|(leads_to, lies)| leads_to < lies)
            }
        };
        let to_file = ways.iter().any(|way| self.bounds.disk.is_file(way, &state.cwd));
        if leads_up && !to_file {
            if to_border {
                let reason = format_args!("{text} is the working directory itself");
                return Err(Denial::new(reason));
            }
            let ups = |text: &str| text.matches("..").count();
            if ups(self.source) > ups(&text.to_string()) + ups(&folder.to_string()) {
                return Err(ups_behind_links());
            }
            self.bounds.disk.leads_up = true;
        }
        let climbs = kind == Link::Relative || text.components().iter().any(is_up);
        self.bounds.disk.make_link(folder, &state.cwd, climbs);
        Ok(())
    }

    /// After a link that leads up was made, `..` may be anywhere.
    pub(crate) fn check_ups(&self, words: &[Word]) -> Judged {
        let goes_up = |word: &Word| word.texts.iter().any(|it| it.to_string().contains(".."));
        if self.bounds.disk.leads_up && words.iter().any(goes_up) {
            return Err(ups_behind_links());
        }
        Ok(())
    }

    /// What is moved, or copied with its links, must lead nowhere else under its new name.
    pub(super) fn move_links(
        &mut self,
        source: &Text,
        target: &Word,
        state: &State<'tree>,
    ) -> Judged {
        let place = |last| self.policy.place(source, &state.cwd, last);
        if place(Last::Kept) == Place::Inside
            && !matches!(place(Last::Followed), Place::Inside | Place::Border)
        {
            return Err(Denial::new(format_args!("{source} is a link that leads outside")));
        }
        if self.bounds.disk.may_hold_links(source, &state.cwd) {
            return Err(Denial::new(format_args!(
                "{source} may have a link in it that was just made; do it in a command of its own"
            )));
        }
        let (Some(name), Cwd::Among(places)) = (source.as_literal(), &state.cwd) else {
            return Ok(());
        };
        for place in places {
            let path = tidy(&place.join(name));
            if let Ok(leads_to) = path.read_link() {
                let leads_to = Text::literal(leads_to.to_string_lossy());
                self.may_link(&leads_to, target, Link::Symbolic, state)?;
            } else if let Some(link) = self.way_out_of(&path) {
                let link = link.display();
                return Err(Denial::new(format_args!("{link} is a link that leads out of it")));
            }
        }
        Ok(())
    }

    /// A link below a folder that leads out of the folder by a relative way, or outside.
    fn way_out_of(&self, folder: &Path) -> Option<PathBuf> {
        let mut ahead = vec![folder.to_owned()];
        let mut looked_at = 0;
        while let Some(below) = ahead.pop() {
            for entry in below.read_dir().ok().into_iter().flatten().flatten() {
                looked_at += 1;
                if looked_at > MOST_ENTRIES {
                    return None;
                }
                let path = entry.path();
                if entry.file_type().is_ok_and(|it| it.is_dir()) {
                    ahead.push(path);
                } else if let Ok(leads_to) = path.read_link() {
                    let text = Text::literal(path.to_string_lossy());
                    let end = self.policy.place(&text, &Cwd::Unknown, Last::Followed);
                    let stays = if leads_to.is_absolute() {
                        matches!(end, Place::Inside | Place::Border)
                    } else {
                        tidy(&below.join(&leads_to)).starts_with(folder)
                    };
                    if !stays {
                        return Some(path);
                    }
                }
            }
        }
        None
    }
}

/// Where a relative link of a name may lead: it may come to lie in a folder of that name, or beside.
fn ways_from(name: &Text, text: &Text) -> Vec<Text> {
    let way = |up: &str| {
        let mut way = name.clone();
        way.push(Piece::Literal(format!("{up}/")));
        way.extend(text);
        way
    };
    vec![way(""), way("/..")]
}

/// How many steps a relative path goes up, and then down; nothing if it goes up later on, where it
/// would leave what a name in it may lead to by then.
fn steps(path: &Text) -> Option<(usize, usize)> {
    let (mut up, mut down) = (0, 0);
    for component in path.components() {
        match component.as_literal() {
            Some("" | ".") => {}
            Some("..") if down > 0 => return None,
            Some("..") => up += 1,
            Some(_) | None => down += 1,
        }
    }
    Some((up, down))
}

/// How many folders a path is below the root; all that the shell may be in must agree.
fn depth(path: &Text, cwd: &Cwd) -> Option<usize> {
    let Cwd::Among(places) = cwd else { return None };
    let name = path.as_literal()?;
    let mut depths = places.iter().map(|place| tidy(&place.join(name)).components().count());
    let first = depths.next()?;
    depths.all(|it| it == first).then_some(first)
}

fn ups_behind_links() -> Denial {
    Denial::new("a link that leads up is made in this command; use .. in a command of its own")
}

fn is_up(component: &Text) -> bool {
    component.as_literal() == Some("..")
}
