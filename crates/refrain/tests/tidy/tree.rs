//! The files of the repository: what git tracks, and what it does not ignore.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of text, by its path from the root of the repository.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether the name ends in this, as in `.rs`.
    pub(crate) fn is(&self, ending: &str) -> bool {
        self.path.ends_with(ending)
    }

    /// Rust source of a crate, with the path inside it.
    pub(crate) fn source_of(&self, name: &str) -> Option<&str> {
        self.path
            .strip_prefix("crates/")?
            .strip_prefix(name)?
            .strip_prefix("/src/")
            .filter(|_| self.is(".rs"))
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(at, line)| (at + 1, line))
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn of_this_repository() -> Vec<File> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout)
        .unwrap()
        .split_terminator('\0')
        // A file may be deleted but still be listed, or not be text.
        .filter_map(|path| Some(File::new(path, &std::fs::read_to_string(root.join(path)).ok()?)))
        .collect()
}
