use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        for (name, content) in files {
            fs::write(place.path().join(name), content).unwrap();
        }
        place
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.folder.path()).unwrap()
    }

    fn unpack(&self) -> Result<Option<Unpacked>, UnpackError> {
        unpack(self.path(), Limits::default())
    }

    /// The error, with everything as it was before.
    fn refusal(&self, limits: Limits) -> String {
        let before = self.files();
        let error = unpack(self.path(), limits).unwrap_err();
        assert_eq!(self.files(), before);
        let error = format!("{:#}", anyhow::Error::from(error));
        error.replace(self.path().as_str(), "[FOLDER]")
    }

    fn files(&self) -> Vec<String> {
        let (mut folders, mut found) = (vec![self.path().to_owned()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in folder.read_dir_utf8().unwrap() {
                let entry = entry.unwrap();
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.into_path());
                } else {
                    found.push(entry.path().strip_prefix(self.path()).unwrap().to_string());
                }
            }
        }
        found.sort();
        found
    }
}

#[test]
fn archives_and_what_lies_beside_them_become_one_folder() {
    let images = zipped(&[("1.png", b"one"), ("2.png", b"two")]);
    let inner = zipped(&[("test.csv", b"x\n1\n")]);
    let place = Place::new(&[
        ("train.csv.zip", &zipped(&[("train.csv", b"x,y\n1,2\n"), ("__MACOSX/._train", b"-")])),
        ("test.zip", &zipped(&[("test.csv.zip", &inner), (".DS_Store", b"-")])),
        ("images.ZIP", &images),
        ("sample_submission.csv", b"y\n1\n"),
        ("description.md", b"Predict y."),
    ]);
    let unpacked = place.unpack().unwrap().unwrap();
    let files = place.files();
    let input: Vec<&str> = files.iter().filter_map(|it| it.strip_prefix("input/")).collect();
    let expected =
        ["images/1.png", "images/2.png", "sample_submission.csv", "test.csv", "train.csv"];
    assert_eq!(input, expected);
    assert_eq!(fs::read_to_string(place.path().join("input/test.csv")).unwrap(), "x\n1\n");
    assert_eq!((unpacked.archives, unpacked.files), (3, 5));
    assert!(place.path().join("train.csv.zip").is_file(), "archives stay");
    assert_eq!(place.unpack().unwrap(), None, "a second time there is nothing to do");
}

#[test]
fn data_that_is_there_is_left_alone() {
    let archive = zipped(&[("train.csv", b"new")]);
    let beside = Place::new(&[("all.zip", &archive), ("train.csv", b"old")]);
    assert_eq!(beside.unpack().unwrap(), None);
    let below = Place::new(&[("all.zip", &archive)]);
    fs::create_dir(below.path().join("data")).unwrap();
    assert_eq!(below.unpack().unwrap(), None);
    assert_eq!(below.files(), ["all.zip"]);
}

#[test]
fn an_entry_that_leads_out_of_the_folder_is_refused() {
    for name in ["../evil.csv", "a/../../evil.csv"] {
        let place = Place::new(&[("all.zip", &zipped(&[("train.csv", b"x"), (name, b"evil")]))]);
        let expected = format!(
            "`[FOLDER]/all.zip` cannot be unpacked: its entry `{name}` leads out of the folder"
        );
        assert_eq!(place.refusal(Limits::default()), expected);
        assert!(!place.path().join("evil.csv").exists());
    }
    // What is absolute stays inside, or is refused; it never is where it says.
    let place = Place::new(&[("all.zip", &zipped(&[("/mle-star-evil.csv", b"evil")]))]);
    place.unpack().ok();
    assert!(!Utf8Path::new("/mle-star-evil.csv").exists());
}

#[test]
fn a_link_is_refused() {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    writer.add_symlink("train.csv", "/etc/passwd", SimpleFileOptions::default()).unwrap();
    let archive = writer.finish().unwrap().into_inner();
    let refusal = Place::new(&[("all.zip", &archive)]).refusal(Limits::default());
    assert_eq!(refusal, "`[FOLDER]/all.zip` cannot be unpacked: its entry `train.csv` is a link");
}

#[test]
fn too_much_is_refused_though_it_is_small_while_packed() {
    let zeros = vec![0; 1 << 20];
    let place = Place::new(&[("all.zip", &zipped(&[("a.csv", &zeros), ("b.csv", &zeros)]))]);
    let limits = Limits { bytes: 3 << 19, entries: 10 };
    let refusal = place.refusal(limits);
    assert!(
        refusal.starts_with("`[FOLDER]/all.zip` cannot be unpacked: there are more"),
        "{refusal}"
    );
    let limits = Limits { bytes: 1 << 30, entries: 1 };
    assert!(place.refusal(limits).ends_with("there are more than 1 entries"));
}

#[test]
fn the_same_file_in_two_archives_and_a_damaged_archive_are_refused() {
    let place = Place::new(&[
        ("a.zip", &zipped(&[("train.csv", b"one")])),
        ("b.zip", &zipped(&[("train.csv", b"two")])),
    ]);
    let refusal = place.refusal(Limits::default());
    assert_eq!(
        refusal,
        "`[FOLDER]/b.zip` cannot be unpacked: its entry `train.csv` is there already"
    );
    let mut archive = zipped(&[("train.csv", b"x,y\n1,2\n")]);
    archive.truncate(archive.len() / 2);
    let refusal = Place::new(&[("all.zip", &archive)]).refusal(Limits::default());
    assert!(refusal.starts_with("`[FOLDER]/all.zip` cannot be unpacked: "), "{refusal}");
}
