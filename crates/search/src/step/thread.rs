//! Which conversation a call goes on with, where calls do.
//!
//! What a path was last answered in is on record with the answer, so a resumed run goes on with the
//! same conversation. Whether it still exists is for the agent to find out.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use mle_star_agent::{Reply, Thread};

use super::recorder::Recorder;
use crate::models::{PipelineConfig, SessionScope};
use crate::phase2::is_path;
use crate::rundir::RunDir;

/// The last conversation of each lane.
#[derive(Debug, Default)]
pub(super) struct Threads {
    last: Mutex<HashMap<String, String>>,
}

impl Threads {
    /// What the next call in `lane` goes on with.
    pub(super) fn of(&self, lane: &str, config: &PipelineConfig, dir: &RunDir) -> Option<Thread> {
        match config.session {
            SessionScope::Path if is_path(lane) => {
                let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                Some(Thread { folder: dir.sessions(), after: last.get(lane).cloned() })
            }
            SessionScope::Path | SessionScope::Call => None,
        }
    }

    /// Takes note of an answer, new or on record. A rehearsal runs ahead of what is done, so it
    /// says nothing of what comes next.
    pub(super) fn note(&self, lane: &str, reply: &Reply, recorder: &Recorder) {
        if let Some(session) = &reply.session
            && recorder.is_writing()
        {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            last.insert(lane.to_owned(), session.clone());
        }
    }
}
