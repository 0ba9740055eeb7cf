//! Links: made, moved, and copied as links.
//!
//! What a command line writes is looked for on the disk as it is before the command runs. A link that
//! the command makes is not there yet, so only links that lead inside may be made. Where one leads to
//! a folder nearer to the border than it is itself, `..` behind it is another folder than its name
//! says, so that no other part of the command may use `..`. The meaning of a relative link depends on
//! where it lies: it must lead inside from where it is moved, too.

use std::path::{Component, Path, PathBuf};

use super::Options;
use crate::place::{Cwd, Last, MOST_ENTRIES, Place, below, pattern_of, tidy};
use crate::shell::{State, Walk};
use crate::text::{Piece, Text, Word};
use crate::{Denial, Judged, glob};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// It leads on from where it lies.
    Symbolic,
    /// It is told from here, and made to lead on from where it lies.
    Relative,
    Hard,
}

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
        let Cwd::Among(places) = &state.cwd else { return Ok(()) };
        let mut looked_at = 0;
        for place in places {
            let mut paths = moved(source, place, &mut looked_at)?;
            if source.pieces().contains(&Piece::Beneath) {
                // What `find` comes by is mostly chosen by name. Those links that led outside before
                // are not the agent's, and are left to that choice.
                let mut links = Vec::new();
                for path in &paths {
                    links.extend(links_below(path, &mut looked_at)?);
                }
                paths.retain(|path| path.is_symlink());
                paths.extend(links);
                paths.retain(|path| {
                    let path = Text::literal(path.to_string_lossy());
                    let end = self.policy.place(&path, &Cwd::Unknown, Last::Followed);
                    matches!(end, Place::Inside | Place::Border)
                });
            }
            for path in paths {
                if let Ok(leads_to) = path.read_link() {
                    let leads_to = Text::literal(leads_to.to_string_lossy());
                    self.may_link(&leads_to, target, Link::Symbolic, state)?;
                } else if let Some(link) = self.way_out_of(&path, &mut looked_at)? {
                    let link = link.display();
                    return Err(Denial::new(format_args!("{link} is a link that leads out of it")));
                }
            }
        }
        Ok(())
    }

    /// A link below a folder that leads out of the folder by a relative way, or outside.
    fn way_out_of(&self, folder: &Path, looked_at: &mut usize) -> Judged<Option<PathBuf>> {
        for path in links_below(folder, looked_at)? {
            let (Ok(leads_to), Some(below)) = (path.read_link(), path.parent()) else { continue };
            let text = Text::literal(path.to_string_lossy());
            let end = self.policy.place(&text, &Cwd::Unknown, Last::Followed);
            let stays = if leads_to.is_absolute() {
                matches!(end, Place::Inside | Place::Border)
            } else {
                tidy(&below.join(&leads_to)).starts_with(folder)
            };
            if !stays {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

/// The links and folders on the disk that a source may name. Where anything at all may be named,
/// there is nothing to be looked at.
fn moved(source: &Text, place: &Path, looked_at: &mut usize) -> Judged<Vec<PathBuf>> {
    if source.has_any() {
        return Ok(Vec::new());
    }
    let pattern = pattern_of(source);
    let mut paths = vec![place.to_owned()];
    let mut is_wild = false;
    for component in Path::new(&pattern).components() {
        match component {
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => paths = vec![PathBuf::from("/")],
            Component::ParentDir if is_wild => {
                return Err(Denial::new(format_args!("it cannot be told where {source} leads")));
            }
            Component::ParentDir => paths = paths.iter().map(|it| tidy(&it.join(".."))).collect(),
            Component::Normal(name) => {
                let name = name.to_string_lossy();
                if glob::is_wild(&name) {
                    is_wild = true;
                    paths = matching(&paths, &name, looked_at)?;
                } else {
                    paths = paths.iter().map(|it| it.join(&*name)).collect();
                }
            }
        }
    }
    Ok(paths)
}

/// The links and folders in some folders that a pattern matches, or that are called like it.
fn matching(folders: &[PathBuf], pattern: &str, looked_at: &mut usize) -> Judged<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in folders {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            look(folder, looked_at)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_file = entry.file_type().is_ok_and(|it| it.is_file());
            if !is_file && (name == pattern || glob::matches(pattern, &name)) {
                paths.push(entry.path());
            }
        }
    }
    Ok(paths)
}

/// All links below a folder.
fn links_below(folder: &Path, looked_at: &mut usize) -> Judged<Vec<PathBuf>> {
    let mut links = Vec::new();
    // A link to a folder is none.
    if folder.is_symlink() {
        return Ok(links);
    }
    for entry in below(folder) {
        look(folder, looked_at)?;
        if entry.file_type().map_or(true, |kind| kind.is_symlink()) {
            links.push(entry.path());
        }
    }
    Ok(links)
}

/// One more entry is looked at; among too many there may be a link that leads anywhere.
fn look(folder: &Path, looked_at: &mut usize) -> Judged {
    *looked_at += 1;
    if *looked_at > MOST_ENTRIES {
        let folder = folder.display();
        return Err(Denial::new(format_args!(
            "there is too much in {folder} to look for links that lead out of it"
        )));
    }
    Ok(())
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
