//! Where calls take place, each made before it is needed.
//!
//! To hold a program tightly takes a process, namespaces, mounts and filters, which is some
//! milliseconds. A call has those minutes that it waits for the model: meanwhile the next stage is
//! set, and what will hold the program there waits to be told what to start. No stage is ever used
//! twice.

use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use mle_star_claude::Launch;
use mle_star_exec::scratch::Scratch;

use super::enclosure::{Enclosure, Needs, Place};

/// The folders of one call, and what starts the program in them.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) launch: Launch,
    pub(super) place: Place,
    /// Whether it was set before it was needed.
    pub(super) was_ready: bool,
}

/// All stages of a run.
#[derive(Debug)]
pub(super) struct Stages {
    enclosure: Enclosure,
    /// Those that are ready, one of a kind.
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

    /// One for a call with these needs: that which is ready, or a new one.
    pub(super) fn take(&self, needs: &Needs) -> std::io::Result<Stage> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = ready.iter().position(|(of, _)| of == needs) {
            return Ok(ready.swap_remove(index).1);
        }
        drop(ready);
        let place = self.place(needs)?;
        let launch = self.enclosure.launch(&place, needs)?;
        Ok(Stage { launch, place, was_ready: false })
    }

    /// Sets the next one for a call with these needs, unless there is one; later, and beside what
    /// the caller does.
    pub(super) fn set_next(self: &Arc<Self>, needs: Needs) {
        let stages = Arc::clone(self);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = stages.set(needs) {
                // Then it is set when it is needed, and whoever needs it will hear why it cannot be.
                tracing::debug!(target: "mle_star", %error, "no stage is set for the next call");
            }
        });
    }

    fn set(&self, needs: Needs) -> std::io::Result<()> {
        let is_there = |ready: &[(Needs, Stage)]| ready.iter().any(|(of, _)| *of == needs);
        if is_there(&self.ready.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let place = self.place(&needs)?;
        let launch = self.enclosure.launch_ahead(&place, &needs)?;
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_there(&ready) {
            ready.push((needs, Stage { launch, place, was_ready: true }));
        }
        Ok(())
    }

    fn place(&self, needs: &Needs) -> std::io::Result<Place> {
        Place::new(self.folder.path(), &self.data_dir, needs.conversations.as_deref())
    }
}
