//! Finds the program, and refuses one that is too old.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;
use crate::options::Environment;
use crate::process::{self, Waiting};

/// How long the program may take to say its version. It is large, and a cold disk is slow.
const ANSWER: Duration = Duration::from_secs(60);

/// What makes the program say its version.
const VERSION: &str = "--version";

/// The program, ready to be started.
#[derive(Debug, Clone)]
pub struct Cli {
    path: PathBuf,
    version: Version,
    launch: Launch,
}

/// How the program is started.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    prefix: Vec<OsString>,
    /// What was started ahead, until it is used.
    waiting: Arc<Mutex<Option<Waiting>>>,
}

/// A version of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// The oldest one that this client was tested with. Older ones ignore what makes hooks fail
    /// closed.
    pub const OLDEST: Self = Self(2, 1, 325);
}

impl Launch {
    /// Started directly. If we are killed it goes on with what it was doing; see
    /// [`keeper`](crate::keeper).
    pub fn direct() -> Self {
        Self::default()
    }

    /// Started by another program, which is given `arguments`, then the path of the program, then
    /// its arguments, and which hands its standard streams through: a [keeper](crate::keeper), or
    /// something that holds the program in a sandbox. It must end with the program, and end the
    /// program when it is told to with `SIGTERM`.
    pub fn through<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into);
        let prefix = std::iter::once(program.into()).chain(arguments).collect();
        Self { prefix, waiting: Arc::default() }
    }

    /// The same, but the other program is started now, with `arguments` only, no variables and in
    /// the root folder. It does what it can, and then waits to be [told](crate::told) what to start,
    /// which is when a conversation begins. It must end if it is not told before the end of its
    /// input. A second conversation starts it again.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime, as all that starts a process with it.
    pub fn ahead<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, Error> {
        let program = program.into();
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        let waiting = Waiting::start(&program, &arguments)?;
        let waiting = Arc::new(Mutex::new(Some(waiting)));
        Ok(Self { waiting, ..Self::through(program, arguments) })
    }

    /// Whether another program stands in between.
    pub(crate) fn is_direct(&self) -> bool {
        self.prefix.is_empty()
    }

    /// The number of the process that was started ahead, as long as it waits.
    pub fn waiting_process(&self) -> Option<u32> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.as_mut().and_then(|it| if it.is_alive() { it.id() } else { None })
    }

    /// What was started ahead, if it is still there.
    pub(crate) fn take_waiting(&self) -> Option<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        waiting.is_alive().then_some(waiting)
    }

    /// What to execute in order to start `program`, and the arguments that come first.
    pub(crate) fn of(&self, program: &Path) -> (OsString, Vec<OsString>) {
        let mut words = self.prefix.iter().cloned().chain([program.into()]);
        let first = words.next().unwrap_or_default();
        (first, words.collect())
    }
}

impl Cli {
    /// The program at `path`, or the first `claude` on the search path if none is given, asked for
    /// its version.
    pub async fn find(path: Option<&Path>) -> Result<Self, Error> {
        let path = match path {
            Some(path) if path.is_file() => path.to_owned(),
            Some(path) => {
                return Err(Error::NotFound { tried: format!("program at `{}`", path.display()) });
            }
            None => on_the_path()
                .ok_or_else(|| Error::NotFound { tried: "`claude` on the search path".into() })?,
        };
        let kept = |name: &OsStr| name == "PATH" || name == "HOME";
        let environment = Environment::empty().inherit(kept);
        let launch = Launch::direct();
        let said = process::output(&launch.of(&path), VERSION, &environment, None, ANSWER).await?;
        let version: Version = said.parse().map_err(|()| Error::NotClaude {
            path: path.clone(),
            said: said.chars().take(200).collect(),
        })?;
        if version < Version::OLDEST {
            return Err(Error::TooOld { path, version, oldest: Version::OLDEST });
        }
        Ok(Self { path, version, launch: Launch::direct() })
    }

    /// Starts it in the way that it is launched, in `folder` and with these variables, and asks for
    /// its version once more: not every program starts everywhere.
    pub async fn try_out(&self, folder: &Path, environment: &Environment) -> Result<(), Error> {
        let command = self.launch.of(&self.path);
        let said = process::output(&command, VERSION, environment, Some(folder), ANSWER).await?;
        match said.parse::<Version>() {
            Ok(_) => Ok(()),
            Err(()) => Err(Error::NotClaude {
                path: self.path.clone(),
                said: said.chars().take(200).collect(),
            }),
        }
    }

    /// The same, started in another way.
    #[must_use]
    pub fn launched(self, launch: Launch) -> Self {
        Self { launch, ..self }
    }

    /// Where the program is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// How it is started.
    pub fn launch(&self) -> &Launch {
        &self.launch
    }
}

impl FromStr for Version {
    type Err = ();

    /// Reads what the program says, such as `2.1.325 (Claude Code)`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let (numbers, rest) = text.trim().split_once(' ').ok_or(())?;
        if rest != "(Claude Code)" {
            return Err(());
        }
        // What comes before a release (`2.2.0-beta.1`) can as much as the release.
        let numbers = numbers.split_once('-').map_or(numbers, |(numbers, _)| numbers);
        let mut parts = numbers.split('.');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or(());
        let version = Self(number()?, number()?, number()?);
        if parts.next().is_some() { Err(()) } else { Ok(version) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

fn on_the_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute()) // the working directory may be somebody else's
        .map(|folder| folder.join("claude"))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_none_or_an_old_one_is_told_what_to_install() {
        let missing = Error::NotFound { tried: String::new() };
        let (version, oldest) = (Version(1, 0, 0), Version::OLDEST);
        let old = Error::TooOld { path: PathBuf::new(), version, oldest };
        let wanted = format!("claude-code@{}", Version::OLDEST);
        for error in [missing, old] {
            assert!(error.remedy().unwrap().contains(&wanted), "{error}");
        }
    }

    #[test]
    fn versions_are_read_and_compared_by_number() {
        assert_eq!("2.1.325 (Claude Code)\n".parse(), Ok(Version(2, 1, 325)));
        assert_eq!("2.2.0-beta.1 (Claude Code)".parse(), Ok(Version(2, 2, 0)));
        assert!(Version(2, 1, 1000) > Version(2, 1, 325) && Version(2, 0, 999) < Version::OLDEST);
        for other in ["", "2.1.325", "2.1 (Claude Code)", "2.1.3.4 (Claude Code)", "gcc 12.2.0"] {
            assert_eq!(other.parse::<Version>(), Err(()), "{other}");
        }
    }

    #[test]
    fn a_launcher_comes_before_the_program() {
        let program = Path::new("/bin/claude");
        assert_eq!(Launch::direct().of(program), ("/bin/claude".into(), vec![]));
        let through = Launch::through("/bin/mle-star", ["__keep"]);
        let arguments = vec!["__keep".into(), "/bin/claude".into()];
        assert_eq!(through.of(program), ("/bin/mle-star".into(), arguments));
    }
}
