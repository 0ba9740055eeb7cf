//! Where calls take place, made before they are needed.
//!
//! To hold a program tightly takes a process, namespaces, mounts and filters, which is some
//! milliseconds. While a call waits for its model, the stage of a later one is set: its folders are
//! made, and what will hold the program there waits to be told what to start. No stage is given to
//! two calls. As every call sets one, there come to be as many as there are calls at a time.
//!
//! Deliberately absent: stages of calls that have the network. They are few, and what they find
//! others by (addresses of names, credentials that are renewed) must not be older than they are.

use std::sync::{Mutex, PoisonError};

use camino::Utf8PathBuf;
use mle_star_claude::Launch;
use mle_star_exec::scratch::Scratch;

use super::enclosure::{Enclosure, Needs, Place};

/// The folders of one call, and what starts the program in them.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) launch: Launch,
    pub(super) place: Place,
}

/// All stages of a run.
#[derive(Debug)]
pub(super) struct Stages {
    enclosure: Enclosure,
    /// Those that are ready.
    ready: Mutex<Vec<(Needs, Stage)>>,
    data_dir: Utf8PathBuf,
    /// Where the folders of calls are.
    folder: Scratch,
}

impl Stages {
    pub(super) fn new(enclosure: Enclosure, data_dir: Utf8PathBuf, folder: Scratch) -> Self {
        Self { enclosure, ready: Mutex::default(), data_dir, folder }
    }

    pub(super) fn enclosure(&self) -> &Enclosure {
        &self.enclosure
    }

    /// One for a call with these needs: one that is ready, or a new one.
    pub(super) fn take(&self, needs: &Needs) -> std::io::Result<Stage> {
        if let Some(stage) = self.take_ready(needs) {
            return Ok(stage);
        }
        let place = self.place(needs)?;
        let launch = self.enclosure.launch(&place, needs)?;
        Ok(Stage { launch, place })
    }

    fn take_ready(&self, needs: &Needs) -> Option<Stage> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let index = ready.iter().position(|(of, _)| of == needs)?;
            let (_, stage) = ready.swap_remove(index);
            // Somebody may have killed what waited there.
            if stage.launch.waiting_process().is_some() {
                return Some(stage);
            }
        }
    }

    /// Sets one for a later call with these needs.
    pub(super) fn set_next(&self, needs: &Needs) {
        if needs.has_network() {
            return;
        }
        match self.set(needs) {
            Ok(stage) => {
                let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
                ready.push((needs.clone(), stage));
            }
            // It is set when it is needed, then, and whoever needs it hears why it cannot be.
            Err(error) => {
                tracing::debug!(target: "mle_star", %error, "no stage is set for the next call");
            }
        }
    }

    fn set(&self, needs: &Needs) -> std::io::Result<Stage> {
        let place = self.place(needs)?;
        let launch = self.enclosure.launch_ahead(&place, needs)?;
        Ok(Stage { launch, place })
    }

    fn place(&self, needs: &Needs) -> std::io::Result<Place> {
        Place::new(self.folder.path(), &self.data_dir, needs.conversations.as_deref())
    }
}
