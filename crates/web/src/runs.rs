//! The runs in a folder, each read as far as its journal goes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use mle_star_exec::{Ended, in_full};
use mle_star_journal::Tail;
use mle_star_search::event::{Begun, Output, Record};
use mle_star_search::rundir::RunDir;
use mle_star_view::{Condition, Glance, Overview, Work};
use serde::Serialize;

/// How many runs are kept in memory that somebody has looked at.
const KEPT_RUNS: usize = 16;

/// What the page is about.
#[derive(Debug, Clone)]
pub enum Source {
    /// One run directory.
    Run(Utf8PathBuf),
    /// A folder of run directories.
    Folder(Utf8PathBuf),
}

impl Source {
    /// A run directory, if `path` is one, else a folder of them.
    pub fn at(path: &Utf8Path) -> Self {
        if RunDir::at(path).journal().is_file() {
            Self::Run(path.to_owned())
        } else {
            Self::Folder(path.to_owned())
        }
    }
}

/// The runs that can be looked at.
#[derive(Debug)]
pub(crate) struct Runs {
    source: Source,
    /// Those that were looked at, the last one last.
    followed: RefCell<Vec<Rc<RefCell<Followed>>>>,
    /// What the list shows of those that have not changed since.
    listed: RefCell<BTreeMap<String, (Seen, Listed)>>,
}

/// How long a journal was, when it was last written to, and whether somebody held it.
type Seen = (u64, Option<SystemTime>, Work);

/// All runs, and whether there can be more than one.
#[derive(Debug, Serialize)]
pub(crate) struct List {
    folder: Option<String>,
    runs: Vec<Listed>,
}

/// A run as the list shows it.
#[derive(Debug, Clone, Serialize)]
struct Listed {
    name: String,
    condition: Condition,
    #[serde(flatten)]
    glance: Glance,
    problem: Option<String>,
}

/// A run, as far as its journal was read.
#[derive(Debug)]
pub(crate) struct Followed {
    pub(crate) name: String,
    pub(crate) dir: RunDir,
    tail: Tail,
    /// As if the run went on.
    folded: Overview,
    /// As it is: nothing is in flight when nobody works on it.
    pub(crate) overview: Overview,
    /// Which parts of the overview are new to whom.
    pub(crate) solutions: Changes,
    pub(crate) studies: Changes,
    pub(crate) steps: Vec<Step>,
    positions: BTreeMap<String, usize>,
    pub(crate) condition: Condition,
    /// Why no more can be read.
    pub(crate) problem: Option<String>,
    /// Changes when anything does.
    pub(crate) version: u64,
    /// Changes when this is another run than before, or is read from its beginning again. No two
    /// have the same.
    pub(crate) generation: u64,
}

/// The version of the run in which each item of a list was last another than before.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<u64>);

impl Changes {
    fn note<T: PartialEq>(&mut self, was: &[T], is: &[T], version: u64) {
        self.0.resize(is.len(), version);
        for (index, (item, changed)) in is.iter().zip(&mut self.0).enumerate() {
            if was.get(index) != Some(item) {
                *changed = version;
            }
        }
    }

    /// What somebody does not have who has seen `version`, with its place in the list.
    pub(crate) fn since<'a, T>(&self, version: Option<u64>, items: &'a [T]) -> Vec<(usize, &'a T)> {
        let items = items.iter().zip(&self.0).enumerate();
        let is_new = |changed: u64| version.is_none_or(|seen| changed > seen);
        items.filter(|(_, (_, at))| is_new(**at)).map(|(index, (item, _))| (index, item)).collect()
    }
}

/// A step, and where its result is.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Step {
    pub(crate) key: String,
    pub(crate) what: What,
    role: Option<String>,
    lane: Option<String>,
    pub(crate) script: Option<String>,
    limit_seconds: Option<f64>,
    began: Timestamp,
    began_seconds: f64,
    ended_seconds: Option<f64>,
    cost_usd: Option<f64>,
    problem: Option<String>,
    #[serde(skip)]
    pub(crate) bytes: Option<Range<u64>>,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    Ask,
    Run,
    Other,
}

impl Runs {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, followed: RefCell::default(), listed: RefCell::default() }
    }

    /// The run of this name, read as far as it goes now.
    pub(crate) fn get(&self, name: &str) -> Option<Rc<RefCell<Followed>>> {
        let root = self.root(name)?;
        let mut followed = self.followed.borrow_mut();
        let position = followed.iter().position(|it| it.borrow().name == name);
        let run = match position {
            Some(position) => followed.remove(position),
            None => Rc::new(RefCell::new(Followed::new(name, RunDir::at(root)))),
        };
        if followed.len() >= KEPT_RUNS {
            followed.remove(0);
        }
        followed.push(Rc::clone(&run));
        run.borrow_mut().read_on();
        Some(run)
    }

    /// The folder of a run. Names come from outside: one with a way out of the folder is none.
    fn root(&self, name: &str) -> Option<Utf8PathBuf> {
        let root = match &self.source {
            Source::Run(root) => (name_of(root) == name).then(|| root.clone())?,
            Source::Folder(folder) => {
                let is_plain =
                    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
                is_plain.then(|| folder.join(name))?
            }
        };
        RunDir::at(&root).journal().is_file().then_some(root)
    }

    /// All runs, the newest first.
    pub(crate) fn list(&self) -> List {
        let (folder, mut names) = match &self.source {
            Source::Run(root) => (None, vec![name_of(root)]),
            Source::Folder(folder) => {
                let entries = folder.read_dir_utf8().into_iter().flatten().filter_map(Result::ok);
                let names = entries.map(|it| it.file_name().to_owned());
                (Some(folder.to_string()), names.collect())
            }
        };
        names.retain(|name| self.root(name).is_some());
        let mut runs: Vec<Listed> = names.iter().filter_map(|name| self.listed(name)).collect();
        runs.sort_by(|a, b| (b.glance.began, &b.name).cmp(&(a.glance.began, &a.name)));
        List { folder, runs }
    }

    fn listed(&self, name: &str) -> Option<Listed> {
        let dir = RunDir::at(self.root(name)?);
        let metadata = fs_err::metadata(dir.journal()).ok()?;
        let seen: Seen = (metadata.len(), metadata.modified().ok(), Work::on(&dir));
        if let Some((when, listed)) = self.listed.borrow().get(name)
            && *when == seen
        {
            return Some(listed.clone());
        }
        let is_followed = self.followed.borrow().iter().any(|it| it.borrow().name == name);
        // One that goes on will be asked for again, and is then read from where it was left.
        let run = match seen.2 {
            Work::Rests if !is_followed => {
                let mut run = Followed::new(name, dir);
                run.read_on();
                Rc::new(RefCell::new(run))
            }
            Work::Rests | Work::GoesOn => self.get(name)?,
        };
        let run = run.borrow();
        let listed = Listed {
            name: name.to_owned(),
            condition: run.condition,
            glance: run.overview.glance(),
            problem: run.problem.clone(),
        };
        self.listed.borrow_mut().insert(name.to_owned(), (seen, listed.clone()));
        Some(listed)
    }
}

fn name_of(root: &Utf8Path) -> String {
    root.file_name().unwrap_or("run").to_owned()
}

fn new_generation() -> u64 {
    static GENERATIONS: AtomicU64 = AtomicU64::new(0);
    GENERATIONS.fetch_add(1, Ordering::Relaxed)
}

impl Followed {
    fn new(name: &str, dir: RunDir) -> Self {
        Self {
            name: name.to_owned(),
            tail: Tail::new(&dir.journal()),
            dir,
            folded: Overview::default(),
            overview: Overview::default(),
            solutions: Changes::default(),
            studies: Changes::default(),
            steps: Vec::new(),
            positions: BTreeMap::new(),
            condition: Condition::Empty,
            problem: None,
            version: 0,
            generation: new_generation(),
        }
    }

    /// Takes in what is new.
    pub(crate) fn read_on(&mut self) {
        let work = Work::on(&self.dir);
        let (has_news, problem) = match self.tail.read_on::<Record>() {
            Ok(news) => {
                if news.is_another {
                    (self.folded, self.generation) = (Overview::default(), new_generation());
                    self.steps.clear();
                    self.positions.clear();
                }
                for (bytes, record) in &news.records {
                    self.folded.apply(record);
                    self.index(record, bytes);
                }
                (news.is_another || !news.records.is_empty(), None)
            }
            Err(error) => (false, Some(in_full(&error))),
        };
        let condition = Condition::of(&self.folded, work);
        if !has_news && condition == self.condition && problem == self.problem {
            return;
        }
        self.version += 1;
        (self.condition, self.problem) = (condition, problem);
        let was = std::mem::replace(&mut self.overview, self.folded.clone());
        self.overview.settle(work);
        let (is, version) = (&self.overview, self.version);
        self.solutions.note(was.solutions(), is.solutions(), version);
        self.studies.note(was.studies(), is.studies(), version);
    }

    /// The step at `key`.
    pub(crate) fn step(&self, key: &str) -> Option<&Step> {
        self.steps.get(*self.positions.get(key)?)
    }

    /// Running time of the run, if it is `now`.
    pub(crate) fn elapsed(&self, now: Timestamp) -> f64 {
        match self.condition {
            Condition::Running => self.overview.tally.elapsed(now),
            Condition::Empty | Condition::Stopped | Condition::Failed | Condition::Finished => {
                self.overview.elapsed()
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "other records are no steps")]
    fn index(&mut self, record: &Record, bytes: &Range<u64>) {
        let seconds = self.folded.tally.elapsed(record.at());
        match record {
            Record::Started { key, begun, at } => {
                let step = Step::begun(key.as_str(), begun.as_ref(), *at, seconds);
                match self.positions.get(key.as_str()).and_then(|it| self.steps.get_mut(*it)) {
                    Some(known) => *known = step,
                    None => {
                        self.positions.insert(key.to_string(), self.steps.len());
                        self.steps.push(step);
                    }
                }
            }
            Record::Finished { key, output, .. } => {
                let position = self.positions.get(key.as_str());
                if let Some(step) = position.and_then(|it| self.steps.get_mut(*it)) {
                    step.end(output, bytes, seconds);
                }
            }
            _ => {}
        }
    }
}

impl Step {
    fn begun(key: &str, begun: Option<&Begun>, began: Timestamp, began_seconds: f64) -> Self {
        let last = key.rsplit('/').next().unwrap_or_default();
        let mut step = Self {
            key: key.to_owned(),
            what: match last {
                "run" => What::Run,
                "totals" => What::Other,
                _ => What::Ask,
            },
            role: None,
            lane: None,
            script: None,
            limit_seconds: None,
            began,
            began_seconds,
            ended_seconds: None,
            cost_usd: None,
            problem: None,
            bytes: None,
        };
        match begun {
            Some(Begun::Ask { role, lane, .. }) => {
                (step.role, step.lane) = (Some(role.to_string()), Some(lane.clone()));
            }
            Some(Begun::Run { lane, script, time_limit_seconds, .. }) => {
                (step.lane, step.script) = (Some(lane.clone()), Some(script.clone()));
                step.limit_seconds = Some(*time_limit_seconds);
            }
            None if step.what == What::Ask => step.role = Some(last.to_owned()),
            None => {}
        }
        step
    }

    fn end(&mut self, output: &Output, bytes: &Range<u64>, seconds: f64) {
        self.ended_seconds = Some(seconds);
        self.cost_usd = output.cost_usd();
        self.bytes = Some(bytes.clone());
        match output {
            Output::Asked { no_answer, .. } => self.problem.clone_from(no_answer),
            Output::Ran { script, outcome, .. } => {
                self.script = Some(script.clone());
                self.problem = problem_of(outcome.ended);
            }
            Output::NotDone { lack, .. } => self.problem = Some(format!("not done: {lack}")),
            Output::Totals { .. } => self.what = What::Other,
        }
    }
}

/// How a script ended that did not end well.
fn problem_of(ended: Ended) -> Option<String> {
    match ended {
        Ended::Exited { code: 0 } => None,
        Ended::Exited { code } => Some(format!("ended with exit code {code}")),
        Ended::Signaled { signal } => Some(format!("ended by signal {signal}")),
        Ended::TimedOut { after_seconds } => {
            Some(format!("stopped at its limit of {after_seconds:.0} s"))
        }
        Ended::Exceeded { resource, used, limit } => {
            Some(format!("stopped because it {}", resource.exceeded(used, limit)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_seen_is_not_new() {
        let mut changes = Changes::default();
        let new = |changes: &Changes, version, items: &[&str]| -> Vec<usize> {
            changes.since(version, items).into_iter().map(|(index, _)| index).collect()
        };
        let (first, second) = (["a", "b"], ["a", "c", "d"]);
        changes.note(&[], &first, 1);
        assert_eq!(new(&changes, None, &first), [0, 1]);
        changes.note(&first, &second, 2);
        assert_eq!(new(&changes, None, &second), [0, 1, 2]);
        assert_eq!(new(&changes, Some(1), &second), [1, 2]);
        assert_eq!(new(&changes, Some(2), &second), [0_usize; 0]);
    }

    #[test]
    fn a_run_that_was_forgotten_meanwhile_is_told_anew() {
        let folder = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::try_from(folder.path().to_owned()).unwrap();
        let names: Vec<String> = (0..=KEPT_RUNS).map(|it| format!("run-{it}")).collect();
        for name in &names {
            fs_err::create_dir_all(folder.join(name)).unwrap();
            fs_err::write(folder.join(name).join("journal.jsonl"), "").unwrap();
        }
        let runs = Runs::new(Source::Folder(folder));
        let generation = |name: &String| runs.get(name).unwrap().borrow().generation;
        let before: Vec<u64> = names.iter().map(generation).collect();
        // The first had to make room for the last.
        let after: Vec<u64> = names.iter().rev().map(generation).collect();
        assert_eq!(after.first(), before.last());
        assert!(!before.contains(after.last().unwrap()), "{before:?} {after:?}");
    }
}
