//! What somebody needs to use the best solution of a run without us.

use camino::{Utf8Path, Utf8PathBuf};
use mle_star_exec::machine::Package;
use mle_star_search::event::Record;
use mle_star_search::models::Score;
use mle_star_search::rundir::{RunDir, copy_whole, write_whole};
use mle_star_view::{Overview, plain};
use serde_json::{Value, json};

/// Packages that are imported under another name than they are installed by.
const RENAMED: [(&str, &str); 9] = [
    ("sklearn", "scikit-learn"),
    ("PIL", "pillow"),
    ("cv2", "opencv-python"),
    ("yaml", "pyyaml"),
    ("skimage", "scikit-image"),
    ("bs4", "beautifulsoup4"),
    ("dateutil", "python-dateutil"),
    ("category_encoders", "category-encoders"),
    ("pytorch_lightning", "pytorch-lightning"),
];

/// The best solution of a run, with what belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// The script.
    pub script: String,
    /// The packages it imports, with their versions.
    pub requirements: String,
    /// A notebook with the script in it.
    pub notebook: Value,
    submission: Option<Utf8PathBuf>,
}

impl Export {
    /// What can be exported of a run; `None` if no script of it was scored yet.
    pub fn of(records: &[Record], dir: &RunDir) -> std::io::Result<Option<Self>> {
        let overview = Overview::of(records);
        let published = dir.root().join("final/solution.py");
        // What wrote the submission is preferred to what may score better by now, but writes none.
        let submitted = overview.submission.as_ref().map(|it| it.score);
        let submitted = submitted.or(overview.selected.as_ref().map(|it| it.score));
        let (script, score) = match (submitted, best_script(&overview)) {
            (Some(score), _) if published.is_file() => (fs_err::read_to_string(published)?, score),
            (_, Some((name, score))) => (fs_err::read_to_string(dir.solution(name))?, score),
            (_, None) => return Ok(None),
        };
        let packages = overview.subject.as_ref().map_or(&[][..], |it| &it.machine.packages);
        Ok(Some(Self {
            requirements: requirements(&script, packages),
            notebook: notebook(&script, score, &overview),
            script,
            submission: Some(dir.submission()).filter(|it| it.is_file()),
        }))
    }

    /// Writes it into a folder, and says which files those are.
    pub fn write(&self, folder: &Utf8Path) -> std::io::Result<Vec<Utf8PathBuf>> {
        let at = |name: &str| folder.join(name);
        let notebook = serde_json::to_string_pretty(&self.notebook)?;
        write_whole(&at("solution.py"), self.script.as_bytes())?;
        write_whole(&at("solution.ipynb"), notebook.as_bytes())?;
        write_whole(&at("requirements.txt"), self.requirements.as_bytes())?;
        let mut written = ["solution.py", "solution.ipynb", "requirements.txt"].map(at).to_vec();
        if let Some(submission) = &self.submission {
            copy_whole(submission, &at("submission.csv"))?;
            written.push(at("submission.csv"));
        }
        Ok(written)
    }
}

/// The script with the best score so far, by the name of its file in `solutions/`.
fn best_script(overview: &Overview) -> Option<(&str, Score)> {
    let best = overview.tally.best?;
    let solution = overview.solutions().iter().find(|it| it.score == Some(best))?;
    Some((solution.script.as_deref()?, best))
}

/// The installed packages that a script imports. What it imports besides is part of Python.
fn requirements(script: &str, packages: &[Package]) -> String {
    let imported = imports(script);
    let is_imported = |package: &&Package| {
        imported.iter().any(|module| {
            let renamed = RENAMED.iter().find(|(name, _)| name == module).map(|(_, it)| *it);
            let normal = |name: &str| name.to_lowercase().replace('_', "-");
            normal(renamed.unwrap_or(module)) == normal(&package.name)
                // Builds for machines without a graphics card have names of their own.
                || package.name == format!("{module}-cpu")
        })
    };
    let lines = packages.iter().filter(is_imported);
    lines.map(|it| format!("{}=={}\n", it.name, it.version)).collect()
}

/// The modules that a script imports, also within functions.
fn imports(script: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in script.lines().map(str::trim_start) {
        let names = match (line.strip_prefix("import "), line.strip_prefix("from ")) {
            (Some(names), _) => names,
            (None, Some(rest)) => rest.split(" import").next().unwrap_or_default(),
            (None, None) => continue,
        };
        for name in names.split(',') {
            let name = name.split([' ', '.', '#', ';']).find(|it| !it.is_empty());
            found.extend(name.filter(|it| !found.contains(it)));
        }
    }
    found
}

/// The script as a notebook: one cell, because it is one program.
fn notebook(script: &str, score: Score, overview: &Overview) -> Value {
    let glance = overview.glance();
    let about = format!(
        "# {}\n\n{}: {score}. The data is expected in `./input`; the submission is written to \
         `./final/submission.csv`.\n",
        plain(&glance.competition_id),
        plain(&glance.metric),
    );
    let lines = |text: &str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let code = |id: &str, text: &str| {
        json!({
            "cell_type": "code", "id": id, "execution_count": null, "metadata": {},
            "outputs": [], "source": lines(text),
        })
    };
    json!({
        "cells": [
            {"cell_type": "markdown", "id": "about", "metadata": {}, "source": lines(&about)},
            code("folders", "import os\n\nos.makedirs(\"./final\", exist_ok=True)"),
            code("solution", script),
        ],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_the_installed_packages_that_are_imported() {
        let script = "import os, numpy as np\nfrom sklearn.linear_model import Ridge\n\
                      def f():\n    import xgboost\nfrom __future__ import annotations\n";
        let package = |name: &str| Package { name: name.to_owned(), version: "1.2".to_owned() };
        let installed = ["numpy", "pandas", "scikit-learn", "xgboost-cpu"].map(package);
        assert_eq!(
            requirements(script, &installed),
            "numpy==1.2\nscikit-learn==1.2\nxgboost-cpu==1.2\n"
        );
        assert_eq!(imports("import\nfrom\nimport ,a"), ["a"]);
    }
}
