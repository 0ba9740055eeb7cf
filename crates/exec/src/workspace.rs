//! The folder a script starts in: empty but for `final/` and the link `input`.
//!
//! What the last script left here is hostile until removed: links that point anywhere, folders
//! without permissions, folders nested deeper than a path can be long. Nothing here follows a
//! link, and nothing here recurses.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use fs_err as fs;
use fs_err::os::unix::fs::symlink;

use crate::environment::{HOME, TMP};
use crate::{ExecError, Job};

/// The link to the data, as scripts know it.
pub(crate) const INPUT: &str = "input";
/// The folder of results, as scripts know it.
pub(crate) const FINAL: &str = "final";

/// Empties `workspace`, creating it where it is absent, and sets up `final/` and the link `input`
/// to `data_dir`.
///
/// Both paths are absolute. A workspace that is a link, or that holds the data, is refused.
pub fn prepare(workspace: &Utf8Path, data_dir: &Utf8Path) -> Result<(), ExecError> {
    let data = real_data_dir(data_dir)?;
    let refused = |reason| ExecError::Workspace { path: workspace.to_owned(), reason };
    if !workspace.is_absolute() {
        return Err(refused("the path is not absolute"));
    }
    match fs::symlink_metadata(workspace) {
        Ok(found) if found.is_symlink() => return Err(refused("it is a symbolic link")),
        Ok(found) if !found.is_dir() => return Err(refused("it is not a folder")),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir_all(workspace)?,
        Err(error) => return Err(error.into()),
    }
    let real = fs::canonicalize(workspace)?;
    if real.parent().is_none() {
        return Err(refused("it is the root folder"));
    }
    if data.starts_with(&real) {
        return Err(refused("it holds the data, which emptying it would remove"));
    }

    empty(&real)?;
    fs::create_dir(workspace.join(FINAL))?;
    symlink(data_dir, workspace.join(INPUT))?;
    Ok(())
}

/// Where the script goes, if its name is one: not a path, and not one of the workspace's own.
pub(crate) fn script_path(job: &Job) -> Result<Utf8PathBuf, ExecError> {
    let mut components = Utf8Path::new(&job.filename).components();
    let plain = match (components.next(), components.next()) {
        (Some(Utf8Component::Normal(name)), None) => name == job.filename,
        _ => false,
    };
    if !plain || [INPUT, FINAL, HOME, TMP].contains(&job.filename.as_str()) {
        return Err(ExecError::Filename { filename: job.filename.clone() });
    }
    Ok(job.workspace.join(&job.filename))
}

/// Waits until the last script in `workspace` is gone, which may still be dying, and keeps others
/// out. Creates the workspace where it is absent; what stands in its place is left to
/// [`prepare`].
pub(crate) fn lock(workspace: &Utf8Path) -> io::Result<Option<std::fs::File>> {
    let is_folder = match fs::symlink_metadata(workspace) {
        Ok(found) => found.is_dir(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(workspace)?;
            true
        }
        Err(error) => return Err(error),
    };
    if !is_folder {
        return Ok(None);
    }
    let folder = std::fs::File::open(workspace)?;
    folder.lock()?;
    Ok(Some(folder))
}

/// The same place without links and `..` on the way to it. It need not exist.
pub(crate) fn without_detours(place: &Utf8Path) -> Utf8PathBuf {
    let straight = |folder: &Utf8Path| folder.canonicalize_utf8().ok();
    for folder in place.ancestors().skip(1) {
        if let Some(straight) = straight(folder)
            && let Ok(rest) = place.strip_prefix(folder)
            && !rest.components().any(|part| part.as_str() == "..")
        {
            return straight.join(rest);
        }
    }
    place.to_owned()
}

/// How many entries of a data folder are looked at for links.
const MOST_ENTRIES: usize = 100_000;

/// The files and folders outside `data_dir` that links inside of it lead to: part of the data,
/// although they lie elsewhere.
pub fn linked_from(data_dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(data) = data_dir.canonicalize_utf8() else { return Vec::new() };
    let mut found = std::collections::BTreeSet::new();
    let mut folders = vec![data.clone()];
    let mut left = MOST_ENTRIES;
    while let Some(folder) = folders.pop() {
        let entries = folder.read_dir_utf8().into_iter().flatten().flatten();
        for entry in entries.take(left) {
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.into_path());
            } else if kind.is_symlink()
                && let Ok(target) = entry.path().canonicalize_utf8()
                && !target.starts_with(&data)
                && target.parent().is_some()
            {
                found.insert(target);
            }
        }
    }
    found.into_iter().collect()
}

/// The data folder without links, to compare with.
fn real_data_dir(data_dir: &Utf8Path) -> Result<PathBuf, ExecError> {
    let refused = |reason| ExecError::DataDir { path: Utf8PathBuf::from(data_dir), reason };
    if !data_dir.is_absolute() {
        return Err(refused("the path is not absolute"));
    }
    if !data_dir.is_dir() {
        return Err(refused("it is not an existing folder"));
    }
    Ok(fs::canonicalize(data_dir)?)
}

/// Removes everything inside `top`.
///
/// The folders inside a folder are lifted up to `top` before their parent goes. A script can nest
/// folders deeper than any path or stack reaches, and this never looks deeper than two levels.
fn empty(top: &Path) -> io::Result<()> {
    unlock(top)?;
    let mut lifted = 0_u64;
    let mut folders = remove_all_but_folders(top)?;
    while let Some(folder) = folders.pop() {
        unlock(&folder)?;
        for inner in remove_all_but_folders(&folder)? {
            unlock(&inner)?; // a folder that moves has its `..` rewritten, which needs permission
            let place = loop {
                lifted += 1;
                let place = top.join(format!(".removing-{lifted}"));
                if fs::symlink_metadata(&place).is_err() {
                    break place;
                }
            };
            fs::rename(inner, &place)?;
            folders.push(place);
        }
        fs::remove_dir(folder)?;
    }
    Ok(())
}

/// Removes the files and the links (not what they point to) in `folder`; returns its folders.
fn remove_all_but_folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(folders)
}

/// Gives us back a folder that a script took from itself with `chmod`.
///
/// Only for paths just seen to be folders: changing permissions follows links.
fn unlock(folder: &Path) -> io::Result<()> {
    const OURS: u32 = 0o700;
    let mut permissions = fs::symlink_metadata(folder)?.permissions();
    if permissions.mode() & OURS != OURS {
        permissions.set_mode(permissions.mode() | OURS);
        fs::set_permissions(folder, permissions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        _dir: tempfile::TempDir,
        data: Utf8PathBuf,
        workspace: Utf8PathBuf,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let (data, workspace) = (root.join("data"), root.join("runs/work"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("train.csv"), "id\n1\n").unwrap();
        Place { _dir: dir, data, workspace }
    }

    fn listing(folder: &Utf8Path) -> Vec<String> {
        let entries = folder.read_dir_utf8().unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().to_owned()).collect();
        names.sort();
        names
    }

    /// REQ-EX-001
    #[test]
    fn a_new_workspace_holds_final_and_the_link_to_the_data() {
        let Place { _dir, data, workspace } = place();
        prepare(&workspace, &data).unwrap();

        assert_eq!(listing(&workspace), ["final", "input"]);
        assert_eq!(workspace.join("input").read_link_utf8().unwrap(), data);
    }

    #[test]
    fn links_are_removed_and_what_they_point_to_stays() {
        let Place { _dir, data, workspace } = place();
        prepare(&workspace, &data).unwrap();
        fs::remove_dir(workspace.join("final")).unwrap();
        symlink(&data, workspace.join("final")).unwrap();
        fs::create_dir_all(workspace.join("deep/er")).unwrap();
        symlink("/", workspace.join("deep/er/root")).unwrap();
        symlink(data.join("train.csv"), workspace.join("deep/file")).unwrap();
        symlink("/nowhere", workspace.join("dangling")).unwrap();

        prepare(&workspace, &data).unwrap();

        assert_eq!(listing(&workspace), ["final", "input"]);
        assert!(!workspace.join("final").is_symlink());
        assert_eq!(fs::read_to_string(data.join("train.csv")).unwrap(), "id\n1\n");
    }

    #[test]
    fn locked_folders_are_removed() {
        let Place { _dir, data, workspace } = place();
        fs::create_dir_all(workspace.join("a/b/c")).unwrap();
        for folder in ["a/b/c", "a/b", "a", ""] {
            let locked = PermissionsExt::from_mode(0o000);
            fs::set_permissions(workspace.join(folder), locked).unwrap();
        }
        prepare(&workspace, &data).unwrap();
        assert_eq!(listing(&workspace), ["final", "input"]);
    }

    #[test]
    fn names_used_while_removing_may_be_taken() {
        let Place { _dir, data, workspace } = place();
        fs::create_dir_all(workspace.join(".removing-1/.removing-2/.removing-1/x")).unwrap();
        fs::write(workspace.join(".removing-3"), "").unwrap();
        prepare(&workspace, &data).unwrap();
        assert_eq!(listing(&workspace), ["final", "input"]);
    }

    #[test]
    fn a_workspace_that_is_a_link_is_refused() {
        let Place { _dir, data, workspace } = place();
        fs::create_dir_all(workspace.parent().unwrap()).unwrap();
        symlink(&data, &workspace).unwrap();

        let refused = prepare(&workspace, &data).unwrap_err();

        assert!(matches!(refused, ExecError::Workspace { .. }), "{refused}");
        assert_eq!(listing(&data), ["train.csv"]);
    }

    #[test]
    fn a_workspace_around_the_data_is_refused() {
        let Place { _dir, data, .. } = place();
        for workspace in [&data, data.parent().unwrap(), Utf8Path::new("/")] {
            let refused = prepare(workspace, &data).unwrap_err();
            assert!(matches!(refused, ExecError::Workspace { .. }), "{refused}");
        }
        assert_eq!(listing(&data), ["train.csv"]);
    }

    #[test]
    fn missing_data_is_refused_before_anything_is_removed() {
        let Place { _dir, data, workspace } = place();
        prepare(&workspace, &data).unwrap();
        fs::write(workspace.join("kept"), "").unwrap();

        let refused = prepare(&workspace, &data.join("absent")).unwrap_err();

        assert!(matches!(refused, ExecError::DataDir { .. }), "{refused}");
        assert_eq!(listing(&workspace), ["final", "input", "kept"]);
    }

    #[test]
    fn a_script_has_a_plain_name_of_its_own() {
        for filename in ["", ".", "..", "/x.py", "a/x.py", "../x.py", "x.py/", "input", ".home"] {
            let job = Job {
                script: String::new(),
                filename: filename.to_owned(),
                workspace: "/work".into(),
                data_dir: "/data".into(),
                time_limit: std::time::Duration::ZERO,
                records: "/jobs/1".into(),
            };
            let refused = script_path(&job).unwrap_err();
            assert!(matches!(refused, ExecError::Filename { .. }), "{filename}");
        }
    }

    #[test]
    fn data_that_is_linked_to_from_elsewhere_is_found() {
        let Place { _dir, data, .. } = place();
        let elsewhere = data.parent().unwrap().join("elsewhere");
        fs::create_dir_all(elsewhere.join("images")).unwrap();
        fs::create_dir(data.join("deep")).unwrap();
        symlink(elsewhere.join("images"), data.join("deep/images")).unwrap();
        symlink("train.csv", data.join("same.csv")).unwrap();
        symlink("/nowhere", data.join("dangling")).unwrap();
        symlink("/", data.join("root")).unwrap();
        assert_eq!(linked_from(&data), [elsewhere.join("images")]);
    }
}
