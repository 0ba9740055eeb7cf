//! Embeds the catalogue: every piece below `catalogue/`, found by looking at the folder.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?).to_owned();
    let catalogue = root.join("catalogue");
    println!("cargo::rerun-if-changed=catalogue");
    let mut files = Vec::new();
    find(&catalogue, &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let name = file.strip_prefix(&catalogue).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        code.extend([format!("    ({name:?}, include_str!({:?})),\n", file.to_string_lossy())]);
    }
    code += "]\n";
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    #[expect(clippy::disallowed_methods, reason = "no dependencies for two lines")]
    fs::write(out.join("catalogue.rs"), code)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "py" || it == "diff") {
            files.push(path);
        }
    }
    Ok(())
}
