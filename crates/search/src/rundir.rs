//! The files of a run, all under one folder.

use camino::{Utf8Path, Utf8PathBuf};
use fs_err as fs;

use crate::step::Request;

/// The file by which a run is asked to end.
const REQUEST: &str = "request";

/// How the names of files end that are not whole yet.
const STAGED: &str = ".tmp";

/// The folder of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    root: Utf8PathBuf,
}

impl RunDir {
    /// The run at `root`, which must be absolute, because scripts run elsewhere.
    pub fn at(root: impl Into<Utf8PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The folder itself.
    pub fn root(&self) -> &Utf8Path {
        &self.root
    }

    /// The journal: the only state of the run.
    pub fn journal(&self) -> Utf8PathBuf {
        self.root.join("journal.jsonl")
    }

    /// Whether somebody works on the run, and so holds its journal. Where that cannot be found out,
    /// nobody does.
    pub fn is_held(&self) -> bool {
        mle_star_journal::is_locked(&self.journal()).unwrap_or(false)
    }

    /// The workspace of a concurrent lane.
    pub fn workspace(&self, lane: &str) -> Utf8PathBuf {
        self.root.join("work").join(lane)
    }

    /// What scripts leave for each other, where they may. Nothing is lost with it but time.
    pub fn shared(&self) -> Utf8PathBuf {
        self.root.join("shared")
    }

    /// Conversations that are kept, where calls go on with those of earlier ones.
    pub fn sessions(&self) -> Utf8PathBuf {
        self.root.join("sessions")
    }

    /// What is known of one execution of a script, besides the journal: the script by its file
    /// name in `solutions/`, in the step `key`.
    pub(crate) fn job(&self, key: &str, script: &str) -> Utf8PathBuf {
        let script = script.trim_end_matches(".py");
        self.root.join("jobs").join(format!("{}.{script}", key.replace('/', ".")))
    }

    /// A file of the run as it is named inside it.
    pub(crate) fn relative(&self, file: &Utf8Path) -> Utf8PathBuf {
        file.strip_prefix(&self.root).unwrap_or(file).to_owned()
    }

    /// `FinalResult` as JSON.
    pub fn result(&self) -> Utf8PathBuf {
        self.root.join("result.json")
    }

    /// The submission of the run.
    pub fn submission(&self) -> Utf8PathBuf {
        self.root.join("final/submission.csv")
    }

    /// A file in `solutions/`.
    pub fn solution(&self, name: &str) -> Utf8PathBuf {
        self.root.join("solutions").join(name)
    }

    /// The log of the run: a line of JSON for all that is worth one.
    pub fn log(&self) -> Utf8PathBuf {
        self.root.join("log.jsonl")
    }

    /// The report of the run, with this extension: `html` or `md`.
    pub fn report(&self, extension: &str) -> Utf8PathBuf {
        self.root.join("report").with_extension(extension)
    }

    /// The file name under which a script is kept: the hash of its content.
    pub(crate) fn script_name(content: &str) -> String {
        let hash = blake3::hash(content.as_bytes()).to_hex();
        format!("{}.py", hash.get(..16).unwrap_or_default())
    }

    /// Keeps a script under the hash of its content, and returns its file name.
    pub(crate) fn keep_script(&self, content: &str) -> std::io::Result<String> {
        let name = Self::script_name(content);
        if !self.solution(&name).exists() {
            write_whole(&self.solution(&name), content.as_bytes())?;
        }
        Ok(name)
    }

    /// Keeps the submission that a script wrote, beside the script, and returns its file name.
    pub(crate) fn keep_submission(&self, script: &str, file: &Utf8Path) -> std::io::Result<String> {
        let name = format!("{}.submission.csv", script.trim_end_matches(".py"));
        copy_whole(file, &self.solution(&name))?;
        Ok(name)
    }

    /// What somebody asks of the run from outside.
    pub fn request(&self) -> Option<Request> {
        let asked = fs::read_to_string(self.root.join(REQUEST)).ok()?;
        match asked.trim() {
            "stop" => Some(Request::Stop),
            "finalize" => Some(Request::Finalize),
            _ => None,
        }
    }

    /// Asks something of the run, or takes it back.
    pub fn set_request(&self, request: Option<Request>) -> std::io::Result<()> {
        let path = self.root.join(REQUEST);
        match request {
            Some(Request::Stop) => write_whole(&path, b"stop\n"),
            Some(Request::Finalize) => write_whole(&path, b"finalize\n"),
            None if path.exists() => fs::remove_file(path),
            None => Ok(()),
        }
    }

    /// Removes what an earlier life was writing when it was killed. Only for whoever holds the
    /// journal.
    pub fn sweep(&self) {
        for folder in [self.root.clone(), self.root.join("solutions"), self.root.join("final")] {
            for entry in folder.read_dir_utf8().into_iter().flatten().flatten() {
                if entry.file_name().ends_with(STAGED) {
                    fs::remove_file(entry.path()).ok(); // it is in nobody's way
                }
            }
        }
    }

    /// Makes a kept submission and its script the ones of the run.
    pub fn publish(&self, submission: &str, script: &str) -> std::io::Result<()> {
        // What can go wrong does so before the first of the two is replaced.
        let staged = stage(&self.submission(), |temporary| {
            fs::copy(self.solution(submission), temporary).map(|_| ())
        })?;
        let published = write_whole(&self.root.join("final/solution.py"), script.as_bytes())
            .and_then(|()| fs::rename(&staged, self.submission()));
        if published.is_err() {
            fs::remove_file(&staged).ok(); // the first error is the one to report
        }
        published
    }

    /// Saves the best script where there is no submission to go with it.
    pub fn publish_script(&self, script: &str) -> std::io::Result<()> {
        write_whole(&self.root.join("final/solution.py"), script.as_bytes())
    }
}

/// Writes a file so that it is never seen half-written.
pub fn write_whole(path: &Utf8Path, content: &[u8]) -> std::io::Result<()> {
    replace(path, |temporary| fs::write(temporary, content))
}

/// Copies a file so that the copy is never seen half-written.
pub fn copy_whole(from: &Utf8Path, to: &Utf8Path) -> std::io::Result<()> {
    replace(to, |temporary| fs::copy(from, temporary).map(|_| ()))
}

fn replace(
    path: &Utf8Path,
    write: impl FnOnce(&Utf8Path) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let staged = stage(path, write)?;
    let replaced = fs::rename(&staged, path);
    if replaced.is_err() {
        fs::remove_file(&staged).ok(); // the first error is the one to report
    }
    replaced
}

/// Writes a whole file beside `path`, ready to take its place.
fn stage(
    path: &Utf8Path,
    write: impl FnOnce(&Utf8Path) -> std::io::Result<()>,
) -> std::io::Result<Utf8PathBuf> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // Two lanes may keep the same script at the same time; the name of each temporary is its own.
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let temporary = Utf8PathBuf::from(format!("{path}.{}-{number}{STAGED}", std::process::id()));
    let written = write(&temporary).and_then(|()| fs::File::open(&temporary)?.sync_all());
    if written.is_err() {
        fs::remove_file(&temporary).ok(); // the first error is the one to report
    }
    written.map(|()| temporary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_was_writing_is_swept_away_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::at(folder.path().to_str().unwrap());
        let script = dir.keep_script("print()").unwrap();
        let half = [dir.solution("a.py.1-0.tmp"), dir.root().join("final/submission.csv.1-3.tmp")];
        for file in &half {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "half").unwrap();
        }
        dir.sweep();
        assert!(half.iter().all(|file| !file.exists()));
        assert!(dir.solution(&script).exists());
    }
}
