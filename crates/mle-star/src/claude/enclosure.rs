//! How the program is held: as scripts are, with what it needs besides.
//!
//! It may write to the folders of its call and nowhere else, and read the data, its own files and
//! what scripts may read. Its network is the way to the model; only a call that is to look
//! something up on the web, and that cannot start programs, has all of it.

use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_claude::{Cli, Launch};
use mle_star_exec::sandbox::{Gap, Network, Tier};
use mle_star_exec::{Hold, Local, workspace};
use mle_star_search::models::WEB_TOOLS;

use super::reach::Reach;
use crate::{dotenv, executor};

/// Tools by which any program can be started.
const PROGRAMS: [&str; 1] = ["Bash"];
/// Variables that name files or folders which the program reads.
const CERTIFICATES: [&str; 3] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Likewise, if it has to prove to a service of its own who we are.
const OF_SERVICES: [&str; 4] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "GOOGLE_APPLICATION_CREDENTIALS",
];

/// What holds the program.
#[derive(Debug, Clone)]
pub(crate) struct Enclosure {
    /// The program that holds it.
    holder: Utf8PathBuf,
    hold: Hold,
}

/// How calls differ in what holds the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    network: Network,
    /// Whether it proves by itself to a service who we are.
    finds_its_own_way: bool,
    /// Where its conversation is kept for later calls, if it is.
    pub(super) conversations: Option<Utf8PathBuf>,
}

impl Needs {
    /// Those of a call with these tools.
    pub(super) fn of(tools: &[String], reach: &Reach, conversations: Option<&Utf8Path>) -> Self {
        Self {
            network: network(tools, reach),
            finds_its_own_way: matches!(reach, Reach::Direct),
            conversations: conversations.map(Utf8Path::to_owned),
        }
    }

    /// Whether it may reach others than the model.
    pub(super) fn has_network(&self) -> bool {
        self.network == Network::Allow
    }
}

/// The folders of one call.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) root: tempfile::TempDir,
    /// Where its conversation is kept for later calls, if it is.
    pub(super) conversations: Option<Utf8PathBuf>,
}

impl Place {
    /// New folders below `folder`, with `data` as `./input`; and the one for conversations, which
    /// stays.
    pub(super) fn new(
        folder: &Path,
        data: &Utf8Path,
        conversations: Option<&Utf8Path>,
    ) -> std::io::Result<Self> {
        if let Some(folder) = conversations {
            // What is said there is for nobody else to read.
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let conversations = conversations.map(Utf8Path::to_owned);
        let place = Self { root: tempfile::tempdir_in(folder)?, conversations };
        for folder in [place.home(), place.temporary(), place.work()] {
            fs_err::create_dir(folder)?;
        }
        symlink(data, place.work().join("input"))?;
        Ok(place)
    }

    /// The program's home.
    pub(super) fn home(&self) -> Utf8PathBuf {
        self.folder("home")
    }

    /// For temporary files.
    pub(super) fn temporary(&self) -> Utf8PathBuf {
        self.folder("tmp")
    }

    /// Where the agent works.
    pub(super) fn work(&self) -> Utf8PathBuf {
        self.folder("work")
    }

    fn folder(&self, name: &str) -> Utf8PathBuf {
        // What is not UTF-8 cannot be the folder of a run either.
        let root = Utf8Path::from_path(self.root.path()).unwrap_or(Utf8Path::new(""));
        root.join(name)
    }
}

impl Enclosure {
    /// Holds `cli` as tightly as `executor` holds scripts; `holder` is the program that does it.
    pub(crate) fn new(
        holder: Utf8PathBuf,
        executor: &Local,
        cli: &Cli,
        data_dir: &Utf8Path,
    ) -> Self {
        let hold = executor
            .hold()
            .reading(installation(cli.path()))
            .reading([data_dir.to_owned()])
            .reading(workspace::linked_from(data_dir));
        Self { holder, hold }
    }

    /// How the program is started for a call with these needs.
    pub(super) fn launch(&self, place: &Place, needs: &Needs) -> std::io::Result<Launch> {
        let file = self.write(place, needs)?;
        Ok(Launch::through(self.holder.as_std_path(), [executor::HOLD, file.as_str()]))
    }

    /// The same, with the process that will hold the program started now.
    pub(super) fn launch_ahead(&self, place: &Place, needs: &Needs) -> std::io::Result<Launch> {
        let file = self.write(place, needs)?;
        Launch::ahead(self.holder.as_std_path(), [executor::HOLD, file.as_str()])
            .map_err(std::io::Error::other)
    }

    /// Writes down how the program is held, and where that is written.
    fn write(&self, place: &Place, needs: &Needs) -> std::io::Result<Utf8PathBuf> {
        let mut files: Vec<Utf8PathBuf> = Vec::new();
        if needs.network == Network::Allow {
            files.extend(CERTIFICATES.iter().filter_map(|name| file_in(name)));
        }
        if needs.finds_its_own_way {
            files.extend(OF_SERVICES.iter().filter_map(|name| file_in(name)));
        }
        let hold = self
            .hold
            .clone()
            .keeping_temporary_files_in(place.temporary())
            .writing(place.home())
            .writing(place.work())
            .reading(files)
            .reaching(needs.network);
        let hold = match &place.conversations {
            Some(folder) => hold.writing(folder.clone()),
            None => hold,
        };
        let file = place.folder("hold.json"); // in none of the folders above
        hold.write(&file)?;
        Ok(file)
    }

    /// What agents that can start programs can do although they should not.
    pub(super) fn gaps(&self, reach: &Reach) -> Vec<Gap> {
        let tools = PROGRAMS.map(str::to_owned);
        let mut gaps = self.hold.clone().reaching(network(&tools, reach)).gaps();
        // Where its processes or ours can be read, so can the variables in them.
        if matches!(reach, Reach::Direct)
            || (matches!(reach, Reach::Forwarded { .. }) && gaps.contains(&Gap::TouchProcesses))
        {
            gaps.push(Gap::ReadCredentials);
        }
        gaps
    }

    /// How tightly the program is held.
    pub(super) fn tier(&self) -> Tier {
        self.hold.tier()
    }
}

/// What a call with these tools may reach.
fn network(tools: &[String], reach: &Reach) -> Network {
    let has = |some: &[&str]| tools.iter().any(|tool| some.contains(&tool.as_str()));
    match reach.port() {
        Some(_) if has(&WEB_TOOLS) && !has(&PROGRAMS) => Network::Allow,
        Some(port) => Network::Port(port),
        // It finds its own way to a service that may be anywhere.
        None => Network::Allow,
    }
}

fn file_in(variable: &str) -> Option<Utf8PathBuf> {
    let value = dotenv::variable(variable)?.into_string().ok()?;
    camino::absolute_utf8(Utf8PathBuf::from(value)).ok()
}

/// What the program at `path` consists of: a file; or, where a package manager put it, also what
/// lies beside it, and what runs it.
pub(crate) fn installation(path: &Path) -> Vec<Utf8PathBuf> {
    let Some(path) = Utf8Path::from_path(path) else { return Vec::new() };
    let real = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    let is_of_packages = |folder: &&Utf8Path| folder.file_name() == Some("node_modules");
    let packages = real.ancestors().filter(is_of_packages).last().map(Utf8Path::to_owned);
    let interpreter = interpreter(&real);
    [Some(path.to_owned()), Some(real), packages].into_iter().flatten().chain(interpreter).collect()
}

/// What the first line of a script names, wherever that is.
fn interpreter(script: &Utf8Path) -> Option<Utf8PathBuf> {
    use std::io::Read as _;
    let mut beginning = String::new();
    fs_err::File::open(script).ok()?.take(200).read_to_string(&mut beginning).ok()?;
    let mut words = beginning.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let program = Utf8Path::new(words.next()?);
    if program.file_name() != Some("env") {
        return program.canonicalize_utf8().ok();
    }
    let name = words.find(|word| !word.starts_with('-'))?;
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .filter_map(|folder| Utf8PathBuf::from_path_buf(folder.join(name)).ok())
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_who_looks_things_up_and_has_no_shell_has_the_network() {
        let reach = Reach::nowhere().await.unwrap();
        let port = Network::Port(reach.port().unwrap());
        let of = |tools: &[&str]| {
            network(&tools.iter().map(|&tool| tool.to_owned()).collect::<Vec<_>>(), &reach)
        };
        assert_eq!(of(&["WebSearch", "WebFetch"]), Network::Allow);
        assert_eq!(of(&["WebFetch", "Bash"]), port);
        assert_eq!((of(&["Read", "Bash"]), of(&[])), (port, port));
        assert_eq!(network(&[], &Reach::Direct), Network::Allow);
    }

    #[test]
    fn a_package_is_given_with_its_neighbours_and_a_file_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(folder.path()).unwrap().canonicalize_utf8().unwrap();
        let package = root.join("lib/node_modules/@anthropic-ai/claude-code");
        fs_err::create_dir_all(&package).unwrap();
        fs_err::create_dir(root.join("bin")).unwrap();
        fs_err::write(package.join("cli.js"), "#!/bin/sh -e\n").unwrap();
        let link = root.join("bin/claude");
        std::os::unix::fs::symlink(package.join("cli.js"), &link).unwrap();
        let shell = Utf8Path::new("/bin/sh").canonicalize_utf8().unwrap();
        assert_eq!(
            installation(link.as_std_path()),
            [link, package.join("cli.js"), root.join("lib/node_modules"), shell]
        );
        let alone = root.join("claude");
        fs_err::write(&alone, [0x7f, b'E', b'L', b'F', 0xff]).unwrap();
        assert_eq!(installation(alone.as_std_path()), [alone.clone(), alone]);
    }
}
