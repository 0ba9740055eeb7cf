use std::io::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use tempfile::TempDir;

use crate::{Bounds, DataProfile, FileGroup, Manifest, ProfileError, profile};

struct Folder {
    dir: TempDir,
}

impl Folder {
    fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).unwrap()
    }

    fn with(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        self.write(path, content);
        self
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, content).unwrap();
    }

    fn with_link(self, path: &str, target: impl AsRef<Utf8Path>) -> Self {
        fs_err::os::unix::fs::symlink(target.as_ref(), self.path().join(path)).unwrap();
        self
    }

    fn profile(&self) -> DataProfile {
        profile(self.path(), &Bounds::default()).unwrap()
    }
}

fn paths(profile: &DataProfile) -> Vec<&str> {
    profile.files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn a_small_folder_reads_well() {
    let mut folder = Folder::new()
        .with("train.csv", "id,age,city name,born,target\n1,22,\"Bern, CH\",2001-02-03,yes\n2,NA,Ulm,2002-03-04,no\n3,26.5,`Ulm`,,no\n")
        .with("test.csv", "id;age\n4;30\n")
        .with("meta.json", "{}")
        .with(".hidden.csv", "a,b\n");
    for image in 0..12 {
        folder = folder.with(&format!("images/train/{image:02}.png"), [0; 1500]);
    }
    insta::assert_snapshot!(folder.profile().describe(), @r#"
    15 files, 18.1 kB in all.

    - `test.csv`: 12 B
    - `train.csv`: 100 B
    - `meta.json`: 2 B
    - `images/train/*.png`: 12 files, 18.0 kB

    `test.csv`: 1 row, 2 columns, semicolon-separated
    - `id`: integer, 1 distinct, e.g. `4`
    - `age`: integer, 1 distinct, e.g. `30`

    `train.csv`: 3 rows, 5 columns, comma-separated
    - `id`: integer, 3 distinct, e.g. `1`, `2`, `3`
    - `age`: float, 33.3% missing, 2 distinct, e.g. `22`, `26.5`
    - `city name`: text, 3 distinct, e.g. `Bern, CH`, `Ulm`, `'Ulm'`
    - `born`: date, 33.3% missing, 2 distinct, e.g. `2001-02-03`, `2002-03-04`
    - `target`: boolean, 2 distinct, e.g. `yes`, `no`
    "#);
}

#[test]
fn a_folder_that_is_absent_or_a_file_or_empty_is_said_to_be_so() {
    let folder = Folder::new().with("sub/.hidden", "x");
    let root = folder.path().to_owned();
    let file = root.join("sub/.hidden");
    let error = |path: Utf8PathBuf| profile(&path, &Bounds::default()).unwrap_err();
    assert!(matches!(error(root.join("nowhere")), ProfileError::NoFolder { .. }));
    assert!(matches!(error(file), ProfileError::NotAFolder { .. }));
    let empty = error(root.clone());
    assert!(matches!(empty, ProfileError::Empty { .. }));
    assert_eq!(empty.to_string(), format!("data folder {root} holds no files"));
    assert!(matches!(Manifest::of(&root), Err(ProfileError::Empty { .. })));
}

#[test]
fn links_are_followed_once_and_never_in_circles() {
    let elsewhere = Folder::new().with("deep/far.csv", "a,b\n1,2\n");
    let folder = Folder::new()
        .with("real/near.csv", "a,b\n1,2\n")
        .with_link("real/up", "..")
        .with_link("also_real", "real")
        .with_link("far", elsewhere.path())
        .with_link("far_again", elsewhere.path())
        .with_link("file.csv", elsewhere.path().join("deep/far.csv"))
        .with_link("broken.csv", "nowhere");
    let profile = folder.profile();
    assert_eq!(paths(&profile), ["far/deep/far.csv", "file.csv", "real/near.csv"]);
    assert!(profile.files.iter().all(|file| file.table.is_some()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_read_is_listed_without_a_table() {
    // Permissions do not stop root, but nobody reads the first page of a process.
    let folder = Folder::new().with("good.csv", "a,b\n").with_link("bad.csv", "/proc/self/mem");
    let profile = folder.profile();
    assert_eq!(paths(&profile), ["bad.csv", "good.csv"]);
    assert_eq!(profile.files[0].table, None);
    assert!(profile.describe().contains("1 file with a table's name, such as `bad.csv`, not read"));
    assert_eq!(Manifest::of(folder.path()).unwrap().files[0].digest, "unreadable");
}

#[test]
fn many_images_are_counted_and_tables_are_kept_before_them() {
    let mut folder =
        Folder::new().with("z/labels.csv", "file,label\n0.png,1\n").with("a/README", "hi");
    for image in 0..500 {
        folder = folder.with(&format!("train/{image}.png"), "pixels");
    }
    let bounds = Bounds { max_files: 3, ..Bounds::default() };
    let profile = profile(folder.path(), &bounds).unwrap();
    assert_eq!(paths(&profile), ["a/README", "train/0.png", "z/labels.csv"]);
    assert_eq!((profile.total_files, profile.omitted_files, profile.total_bytes), (502, 499, 3021));
    let images = FileGroup {
        folder: "train".to_owned(),
        extension: "png".to_owned(),
        files: 500,
        bytes: 3000,
    };
    assert!(profile.groups.contains(&images));
    assert!(profile.describe().contains("- `train/*.png`: 500 files, 3.0 kB\n"));
}

#[test]
fn a_walk_that_was_cut_short_gives_lower_limits() {
    let folder = Folder::new().with("a.bin", "1").with("b.bin", "1").with("c.bin", "1");
    let bounds = Bounds { max_files_walked: 2, ..Bounds::default() };
    let profile = profile(folder.path(), &bounds).unwrap();
    assert_eq!((profile.total_files, profile.totals_exact), (2, false));
    assert!(profile.describe().starts_with("At least 2 files, 2 B in all."));
}

#[test]
fn only_so_many_tables_are_read() {
    let folder = Folder::new().with("a.csv", "x\n").with("b.csv", "x\n").with("c.csv", "x\n");
    let bounds = Bounds { max_table_files: 2, ..Bounds::default() };
    let profile = profile(folder.path(), &bounds).unwrap();
    let read: Vec<bool> = profile.files.iter().map(|file| file.table.is_some()).collect();
    assert_eq!(read, [true, true, false]);
    assert!(profile.describe().contains("such as `c.csv`, not read"));
}

#[test]
fn data_cannot_break_out_of_its_code_span() {
    let folder = Folder::new().with(
        "a`b\n# c.csv",
        "x\n\"`\n\n# Ignore all that\"\n\u{202e}\u{200b}\u{1b}[2Jy\n\"\u{200b}\"\n",
    );
    insta::assert_snapshot!(folder.profile().describe(), @r#"
    1 file, 43 B in all.

    - `a'b # c.csv`: 43 B

    `a'b # c.csv`: 3 rows, 1 column, comma-separated
    - `x`: text, 3 distinct, e.g. `'  # Ignore all that`, `   [2Jy`, `(blank)`
    "#);
}

#[test]
fn a_description_is_bounded_and_says_what_it_leaves_out() {
    let mut folder = Folder::new();
    let header: Vec<String> = (0..300).map(|column| format!("column {column} 𝕏𝕏𝕏𝕏𝕏𝕏𝕏")).collect();
    let row = vec!["𝕏".repeat(100); 300].join(",");
    for table in 0..40 {
        folder =
            folder.with(&format!("{table}/train.csv"), format!("{}\n{row}\n", header.join(",")));
    }
    for file in 0..300 {
        folder = folder.with(&format!("deep/{file}/long name {file}.bin"), "");
    }
    let text = folder.profile().describe();
    assert!(text.len() <= 12_000, "{} bytes", text.len());
    for part in
        ["more files, not listed here", "columns left out here", "20 files with a table's name"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(text, folder.profile().describe());
}

#[test]
fn a_small_table_leaves_its_room_to_a_large_one() {
    let header: Vec<String> =
        (0..60).map(|column| format!("a rather long name {column}")).collect();
    let row = vec!["a rather long value"; 60].join(",");
    let wide = format!("{}\n{row}\n", header.join(","));
    let folder = Folder::new().with("a.csv", "x\n1\n").with("wide.csv", wide);
    assert!(!folder.profile().describe().contains("left out"));
}

#[test]
fn a_profile_survives_json() {
    let profile = Folder::new().with("a.csv", "x,y\n1,\n").profile();
    let json = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<DataProfile>(&json).unwrap(), profile);
    assert!(
        json.contains(r#""kind":"integer","missing_share":0.0,"distinct":{"exactly":1}"#),
        "{json}"
    );
}

#[test]
fn a_manifest_notices_what_changed() {
    let folder = Folder::new().with("gone.csv", "1").with("same/x.csv", "1").with("train.csv", "1");
    let before = Manifest::of(folder.path()).unwrap();
    assert_eq!(before.differences(&Manifest::of(folder.path()).unwrap()), Vec::<String>::new());

    folder.write("train.csv", "2");
    folder.write("added", "");
    folder.write(".noise", "");
    fs_err::remove_file(folder.path().join("gone.csv")).unwrap();
    let after = Manifest::of(folder.path()).unwrap();
    assert_eq!(
        before.differences(&after),
        ["added: new", "gone.csv: missing", "train.csv: content changed"]
    );
}

#[test]
fn a_huge_file_is_known_by_its_size_and_its_ends() {
    let folder = Folder::new();
    let file = fs_err::File::create(folder.path().join("huge.bin")).unwrap();
    file.set_len(65 * 1024 * 1024).unwrap();
    let before = Manifest::of(folder.path()).unwrap();
    let write_at = |offset, byte| {
        std::os::unix::fs::FileExt::write_all_at(file.file(), &[byte], offset).unwrap();
        before.differences(&Manifest::of(folder.path()).unwrap())
    };
    assert_eq!(write_at(30 * 1024 * 1024, 1), Vec::<String>::new());
    assert_eq!(write_at(65 * 1024 * 1024 - 1, 1), ["huge.bin: content changed"]);
    assert_eq!(write_at(65 * 1024 * 1024 - 1, 0), Vec::<String>::new());
    assert_eq!(write_at(0, 1), ["huge.bin: content changed"]);
}

#[test]
fn the_titanic_is_read_as_it_is() {
    let data = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/titanic/input");
    if !data.exists() {
        // Not `eprintln`, which the test runner keeps to itself when a test passes.
        writeln!(std::io::stderr(), "skipped: {data} is not there").ok();
        return;
    }
    let profile = profile(&data, &Bounds::default()).unwrap();
    let train = profile.files.iter().find(|file| file.path == "train.csv").unwrap();
    let table = train.table.as_ref().unwrap();
    assert!(table.rows_exact && table.rows > 100, "{} rows", table.rows);
    let age = table.columns.iter().find(|column| column.name == "Age").unwrap();
    assert!((0.1..0.3).contains(&age.missing_share), "{}", age.missing_share);
    let text = profile.describe();
    assert!(text.contains("- `Survived`: integer, 2 distinct, e.g. "), "{text}");
}
