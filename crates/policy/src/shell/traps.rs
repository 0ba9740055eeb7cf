//! Code that is run later, when nothing says so any more.

use super::State;

/// The code of traps, and what may be known when it is run.
#[derive(Debug, Default)]
pub(crate) struct Traps {
    sources: Vec<String>,
    met: Option<State<'static>>,
}

impl Traps {
    pub(crate) fn set(&mut self, source: &str, state: &State<'_>) {
        if !self.sources.iter().any(|it| it == source) {
            self.sources.push(source.to_owned());
        }
        self.meet(state);
    }

    /// The shell comes by a state, in which a trap may go off.
    pub(super) fn meet(&mut self, state: &State<'_>) {
        if self.sources.is_empty() {
            return;
        }
        let state = state.for_other_source();
        self.met = Some(match self.met.take() {
            Some(met) => met.or(state),
            None => state,
        });
    }

    /// A trap with all that may be known when it goes off.
    pub(super) fn next(&mut self) -> Option<(String, State<'static>)> {
        let source = self.sources.pop()?;
        let met = self.met.clone()?;
        Some((source, State { parameters: None, ..met }))
    }
}
