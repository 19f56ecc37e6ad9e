//! A visible name, which is a link, and the hidden directories that it points to.
//!
//! The link `dt=2026-06-09` points to `.dt=2026-06-09.RUN.ATTEMPT`. RUN distinguishes runs: if two of them publish to the same
//! name, the second is refused. An attempt that was stopped cleanly resumes under its own number, and its files may be visible
//! already; then its next directory is `ATTEMPT-1`, and so on.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::super::error::WriteError;
use super::tree;
use crate::failpoint;
use crate::run::Run;

/// How many characters of the run's id are in a directory name.
const RUN_LENGTH: usize = 12;
/// The suffix of a link before it is renamed to the visible name.
const LINK: &str = ".link";

/// The visible name of a run's files, for one attempt.
#[derive(Debug)]
pub(crate) struct VisibleDirectory {
    /// The directory that contains the link.
    pub(crate) parent: PathBuf,
    name: String,
    run: String,
    attempt: u64,
}

impl VisibleDirectory {
    pub(crate) fn of(visible: &Path, run: &Run) -> Result<VisibleDirectory, WriteError> {
        let parts = visible.parent().zip(visible.file_name().and_then(|name| name.to_str()));
        let Some((parent, name)) = parts else {
            let message = format!("`{}` is not a directory name that can be published", visible.display());
            return Err(WriteError::Refused(message));
        };
        let id = run.id().to_string();
        let short: String = id.chars().filter(char::is_ascii_alphanumeric).take(RUN_LENGTH).collect();
        Ok(VisibleDirectory {
            parent: parent.to_owned(),
            name: name.to_owned(),
            run: short,
            attempt: run.attempt(),
        })
    }

    fn visible(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The run and attempt of a hidden directory of this name; none for any other name.
    fn owner<'h>(&self, hidden: &'h str) -> Option<(&'h str, u64)> {
        let rest = hidden.strip_prefix('.')?.strip_prefix(&self.name)?.strip_prefix('.')?;
        let (run, number) = rest.split_once('.')?;
        let (attempt, again) = number.split_once('-').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_ours = run.len() == RUN_LENGTH && is_number(again) && is_number(attempt);
        Some((run, attempt.parse().ok()?)).filter(|_| is_ours)
    }

    /// Creates the directory that contains the link, with its parents.
    pub(crate) fn create_parent(&self) -> Result<(), WriteError> {
        let missing: Vec<&Path> = self.parent.ancestors().take_while(|path| !path.exists()).collect();
        fs::create_dir_all(&self.parent).map_err(|error| file("cannot be created", &self.parent, error))?;
        missing.into_iter().filter_map(Path::parent).try_for_each(tree::sync)
    }

    /// The name of the directory that is visible now; an error if it does not belong to this run.
    pub(crate) fn shown(&self) -> Result<Option<String>, WriteError> {
        let visible = self.visible();
        let link = match fs::read_link(&visible) {
            Ok(link) => link,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                return Err(WriteError::Refused(format!(
                    "`{path}` exists and is not a link that Refrain created, so it is left unchanged\n  move it away, then retry: mv '{path}' '{path}.old'",
                    path = visible.display()
                )));
            }
            Err(error) => return Err(file("cannot be read", &visible, error)),
        };
        match link.to_str().and_then(|hidden| Some((hidden, self.owner(hidden)?))) {
            Some((hidden, (run, _))) if run == self.run => Ok(Some(hidden.to_owned())),
            Some((hidden, _)) => Err(WriteError::Refused(format!(
                "`{path}` shows the files of another run, in `{hidden}`: two runs cannot publish to one path\n  give each job its own `path`; if the other job no longer exists: rm '{path}'",
                path = visible.display()
            ))),
            None => Err(WriteError::Refused(format!(
                "`{path}` is a link to `{link}` that Refrain did not create, so it is left unchanged\n  move it away, then retry: mv '{path}' '{path}.old'",
                path = visible.display(),
                link = link.display()
            ))),
        }
    }

    /// Creates an empty directory for this attempt. Returns its name.
    pub(crate) fn make(&self) -> Result<String, WriteError> {
        let mut again = 0_u32;
        loop {
            let tail = if again > 0 { format!("-{again}") } else { String::new() };
            let hidden = format!(".{}.{}.{}{tail}", self.name, self.run, self.attempt);
            let path = self.parent.join(&hidden);
            match fs::create_dir(&path) {
                Ok(()) => return Ok(hidden),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => again += 1,
                Err(error) => return Err(file("cannot be created", &path, error)),
            }
        }
    }

    /// Points the visible name to this directory. Returns the directory that it pointed to before.
    pub(crate) fn point(&self, hidden: &str) -> Result<Option<String>, WriteError> {
        let before = self.shown()?;
        let (visible, link) = (self.visible(), self.parent.join(format!("{hidden}{LINK}")));
        symlink(hidden, &link).map_err(|error| file("cannot be created", &link, error))?;
        fs::rename(&link, &visible).map_err(|error| file("cannot be replaced", &visible, error))?;
        failpoint::reach("files.swapped");
        tree::sync(&self.parent)?;
        Ok(before)
    }

    /// Removes what this attempt and earlier ones left, except one directory. The fence is raised, so no attempt creates a link
    /// to any of these any more.
    pub(crate) fn sweep(&self, keep: Option<&str>) {
        let entries = fs::read_dir(&self.parent).into_iter().flatten().flatten();
        for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
            let owner = self.owner(name.strip_suffix(LINK).unwrap_or(&name));
            let is_left = owner.is_some_and(|(run, attempt)| run == self.run && attempt <= self.attempt);
            if is_left && Some(name.as_str()) != keep {
                self.remove(&name);
            }
        }
    }

    /// Removes a directory. If that fails it is only logged: a hidden directory does no harm.
    pub(crate) fn remove(&self, hidden: &str) {
        let path = self.parent.join(hidden);
        let removed = match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(path = %path.display(), %error, "a directory of an earlier attempt cannot be removed");
            }
            _ => {}
        }
    }
}

fn file(what: &'static str, path: &Path, source: io::Error) -> WriteError {
    WriteError::File { what, path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path, attempt: u64) -> VisibleDirectory {
        VisibleDirectory {
            parent: folder.to_owned(),
            name: "a".to_owned(),
            run: "0123456789ab".to_owned(),
            attempt,
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn hidden_directories_of_one_name_are_distinguished_from_others() {
        let place = place(Path::new("/"), 1);
        for (hidden, expected) in [
            (".a.0123456789ab.3", Some(("0123456789ab", 3))),
            (".a.0123456789ab.3-2", Some(("0123456789ab", 3))),
            (".a.ffffffffffff.3", Some(("ffffffffffff", 3))),
            (".b.0123456789ab.3", None),
            (".a.b.0123456789ab.3", None),
            (".a.0123456789ab.0123456789ab.3", None),
            (".a.0123456789ab.", None),
            (".a.0123456789ab.3-", None),
            (".a.3", None),
            ("a", None),
        ] {
            assert_eq!(place.owner(hidden), expected, "{hidden}");
        }
    }

    #[test]
    fn a_newer_attempt_removes_only_the_leftovers_of_older_ones() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".a.0123456789ab.1", ".a.0123456789ab.4", ".a.ffffffffffff.1", ".ab.0123456789ab.1"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        symlink(".a.0123456789ab.2", folder.path().join(".a.0123456789ab.2.link")).unwrap();
        let place = place(folder.path(), 3);
        let made = place.make().unwrap();
        assert_eq!(place.point(&made).unwrap(), None);
        place.sweep(Some(&made));
        let left = [".a.0123456789ab.3", ".a.0123456789ab.4", ".a.ffffffffffff.1", ".ab.0123456789ab.1", "a"];
        assert_eq!(names(folder.path()), left);
        assert_eq!(place.shown().unwrap().as_deref(), Some(".a.0123456789ab.3"));
    }

    #[test]
    fn a_resumed_attempt_does_not_write_into_its_published_directory() {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path(), 3);
        let first = place.make().unwrap();
        place.point(&first).unwrap();
        let second = place.make().unwrap();
        assert_eq!(second, ".a.0123456789ab.3-1");
        assert_eq!(place.point(&second).unwrap(), Some(first));
        place.sweep(Some(&second));
        assert_eq!(names(folder.path()), [".a.0123456789ab.3-1", "a"]);
    }
}
