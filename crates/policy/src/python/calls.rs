//! Calls that write, and calls that start programs.

/// Which arguments of a call are written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Targets {
    First,
    Second,
    All,
    /// What the method is called on, and whatever it is given.
    Receiver,
    /// The first, or the receiver of a method, if a mode says that it is written.
    Opened,
    /// The first, if a mode that is named says that it is written.
    Mapped,
    /// The first, which is changed if it is there and made if it is not.
    Kept,
    /// The first, if it is to be changed in place.
    InPlace,
    /// A folder that is named.
    Folder,
}

/// What is written by calls whose last name is this, on whatever they are called.
pub(super) const CALLS: &[(&str, Targets)] = &[
    ("open", Targets::Opened),
    ("to_csv", Targets::First),
    ("to_parquet", Targets::First),
    ("to_pickle", Targets::First),
    ("to_json", Targets::First),
    ("to_excel", Targets::First),
    ("to_feather", Targets::First),
    ("to_hdf", Targets::First),
    ("write_csv", Targets::First),
    ("write_parquet", Targets::First),
    ("savefig", Targets::First),
    ("save_model", Targets::First),
    ("save_pretrained", Targets::First),
    ("savez", Targets::First),
    ("savez_compressed", Targets::First),
    ("savetxt", Targets::First),
    ("tofile", Targets::First),
    ("save", Targets::All),
    ("dump", Targets::Second),
    ("copy", Targets::Second),
    ("copy2", Targets::Second),
    ("copyfile", Targets::Second),
    ("copytree", Targets::Second),
    ("copymode", Targets::Second),
    ("move", Targets::All),
    ("rmtree", Targets::First),
    ("make_archive", Targets::First),
    ("unpack_archive", Targets::Second),
    ("extractall", Targets::First),
    ("remove", Targets::First),
    ("unlink", Targets::Receiver),
    ("rmdir", Targets::Receiver),
    ("removedirs", Targets::First),
    ("mkdir", Targets::Receiver),
    ("makedirs", Targets::First),
    ("mknod", Targets::First),
    ("mkfifo", Targets::First),
    ("rename", Targets::Receiver),
    ("renames", Targets::All),
    ("replace", Targets::Receiver),
    ("symlink", Targets::All),
    ("link", Targets::All),
    ("symlink_to", Targets::Receiver),
    ("hardlink_to", Targets::Receiver),
    ("truncate", Targets::First),
    ("chmod", Targets::Receiver),
    ("chown", Targets::First),
    ("touch", Targets::Receiver),
    ("write_text", Targets::Receiver),
    ("write_bytes", Targets::Receiver),
    ("chdir", Targets::First),
    ("urlretrieve", Targets::Second),
    ("to_html", Targets::First),
    ("to_latex", Targets::First),
    ("to_markdown", Targets::First),
    ("to_orc", Targets::First),
    ("to_stata", Targets::First),
    ("to_xml", Targets::First),
    ("write_excel", Targets::First),
    ("write_html", Targets::First),
    ("write_image", Targets::First),
    ("write_ipc", Targets::First),
    ("write_json", Targets::First),
    ("write_ndjson", Targets::First),
    ("sink_csv", Targets::First),
    ("sink_parquet", Targets::First),
    ("ExcelWriter", Targets::First),
    ("imsave", Targets::First),
    ("imwrite", Targets::First),
    ("save_weights", Targets::First),
    ("dump_stats", Targets::First),
    ("SummaryWriter", Targets::First),
    ("basicConfig", Targets::First),
    ("FileHandler", Targets::First),
    ("RotatingFileHandler", Targets::First),
    ("TimedRotatingFileHandler", Targets::First),
    ("WatchedFileHandler", Targets::First),
    ("utime", Targets::First),
    ("copystat", Targets::Second),
    ("memmap", Targets::Mapped),
    ("open_memmap", Targets::Mapped),
];

/// What is written by calls of these full names.
pub(super) const FULL_CALLS: &[(&str, Targets)] = &[
    ("zipfile.ZipFile", Targets::Opened),
    ("h5py.File", Targets::Opened),
    ("fileinput.input", Targets::InPlace),
    ("fileinput.FileInput", Targets::InPlace),
    ("sqlite3.connect", Targets::Kept),
    ("aiosqlite.connect", Targets::Kept),
    ("duckdb.connect", Targets::Kept),
    ("shelve.open", Targets::Kept),
    ("dbm.open", Targets::Kept),
    ("tempfile.mkdtemp", Targets::Folder),
    ("tempfile.mkstemp", Targets::Folder),
    ("tempfile.NamedTemporaryFile", Targets::Folder),
    ("tempfile.TemporaryDirectory", Targets::Folder),
    ("tempfile.TemporaryFile", Targets::Folder),
];

/// Arguments that say where something is written, whatever is called.
pub(super) const WRITTEN_NAMES: &[&str] = &[
    "checkpoint_dir",
    "default_root_dir",
    "dest_dir",
    "destination",
    "export_dir",
    "export_path",
    "log_dir",
    "log_file",
    "log_path",
    "logdir",
    "logfile",
    "logging_dir",
    "out_dir",
    "out_file",
    "out_path",
    "outdir",
    "outfile",
    "output_dir",
    "output_file",
    "output_path",
    "save_dir",
    "save_directory",
    "save_path",
];

/// Methods of strings and lists have some of those names too; on these modules they are files.
pub(super) const AMBIGUOUS: &[&str] =
    &["copy", "move", "remove", "replace", "rename", "save", "dump", "truncate", "link"];

pub(super) const SHELLS: &[&str] =
    &["system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell"];
pub(super) const RUNS: &[&str] = &["run", "call", "check_call", "check_output", "Popen"];

/// What a program or its shell is started with.
const STARTS: &[&str] = &["os", "posix", "subprocess", "asyncio.subprocess", "asyncio", "pty"];

/// Whether a full name is a function that starts programs.
pub(super) fn starts_programs(full: &str) -> bool {
    let Some((module, name)) = full.rsplit_once('.') else { return false };
    let is_class = name == "Popen";
    let known = SHELLS.contains(&name)
        || (RUNS.contains(&name) && module.ends_with("subprocess"))
        || name.starts_with("exec")
        || name.contains("spawn")
        || name.starts_with("create_subprocess");
    STARTS.contains(&module) && known && !is_class
}
