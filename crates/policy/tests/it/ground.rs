//! A working directory with something around it that must stay as it is.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use mle_star_policy::{Policy, Verdict};
use serde_json::json;

pub(crate) struct Ground {
    pub(crate) policy: Policy,
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Ground {
    /// `work` with scripts and a link `input` to `data`; `victim` and `home` beside it.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in [
            "work/src",
            "work/final",
            "work/logs",
            "work/links",
            "work/env/bin",
            "data",
            "victim/sub",
            "home/.ssh",
        ] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        let files = [
            ("work/solution.py", "import pandas as pd\npd.read_csv('input/train.csv')\n"),
            ("work/train.csv", "a,b\n"),
            ("work/good.sh", "#!/bin/bash\nset -e\npython solution.py > logs/out.txt\n"),
            ("work/bad.sh", "#!/bin/bash\nrm -rf ../victim\n"),
            ("work/bad.py", "import shutil\nshutil.rmtree('../victim')\n"),
            ("work/loop.sh", "bash loop.sh\n"),
            ("data/train.csv", "a,b\n"),
            ("victim/file", "x"),
            ("home/.ssh/id_rsa", "key"),
        ];
        for (name, content) in files {
            fs_err::write(root.join(name), content).unwrap();
        }
        // A Python of its own, which cannot be read as a script.
        fs_err::write(root.join("work/env/bin/python"), b"\x7fELF\xff\xfe").unwrap();
        symlink("../data", root.join("work/input")).unwrap();
        symlink(root.join("victim"), root.join("work/way_out")).unwrap();
        symlink(root.join("victim/file"), root.join("work/links/link.txt")).unwrap();
        symlink("src", root.join("work/way_in")).unwrap();
        let policy = Policy::new(root.join("work"))
            .also_reading(root.join("data"))
            .with_home(root.join("home"))
            .with_variable("USER", "agent")
            .denying("terraform apply");
        Self { policy, root, _folder: folder }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The verdict on a command; `ROOT` in it stands for the ground.
    pub(crate) fn shell(&self, command: &str) -> Verdict {
        let command = command.replace("ROOT", &self.root.to_string_lossy());
        self.judge("Bash", &json!({"command": command}))
    }

    pub(crate) fn judge(&self, tool: &str, input: &serde_json::Value) -> Verdict {
        self.policy.judge(tool, input, &self.at("work"))
    }

    pub(crate) fn work(&self) -> &Path {
        &self.root
    }
}

pub(crate) fn is_denied(verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Deny { .. })
}
