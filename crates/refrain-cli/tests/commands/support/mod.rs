//! A directory in which commands are typed, and a store that they share.

use std::path::{Path, PathBuf};
use std::process::Command;

use refrain::{Definition, Job, JobError, Refrain, Run};
use tempfile::TempDir;

/// Names what a module offers, although not every test program uses all of it.
macro_rules! used_or_not {
    ($($item:expr),+ $(,)?) => {
        const _: () = {
            $(let _ = $item;)+
        };
    };
}
use used_or_not;

#[path = "../../../../refrain/tests/support/address.rs"]
pub(crate) mod address;
#[path = "../../../../refrain/tests/support/children.rs"]
pub(crate) mod children;
#[path = "../../../../refrain/tests/support/eventually.rs"]
pub(crate) mod eventually;
pub(crate) mod postgres;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_refrain");

/// A directory in which commands are typed; it goes when it goes out of scope.
pub(crate) struct Desk {
    directory: TempDir,
    store: Option<String>,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Desk {
    /// With the store that nobody has to name.
    pub(crate) fn new() -> Desk {
        Desk { directory: tempfile::tempdir().unwrap(), store: None }
    }

    /// With a store that is named in the environment.
    pub(crate) fn at(store: &str) -> Desk {
        Desk { store: Some(store.to_owned()), ..Desk::new() }
    }

    /// With a SQLite file in the directory, `store.db`.
    pub(crate) fn sqlite() -> Desk {
        Desk::at("sqlite:store.db")
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The program with its arguments, to be run here.
    pub(crate) fn command(&self, line: &str) -> Command {
        self.command_of(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn command_of(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.path()).env_remove("REFRAIN_STORE");
        if let Some(store) = &self.store {
            command.env("REFRAIN_STORE", store);
        }
        command
    }

    /// Runs a command to its end.
    pub(crate) fn refrain(&self, line: &str) -> Said {
        said(&mut self.command(line))
    }

    /// Queues keys of `noop`, each with a payload, as another program would.
    pub(crate) async fn enqueue(&self, offers: &[(&str, &str)]) {
        let address = self.store.as_deref().unwrap();
        let address = match address.strip_prefix("sqlite:") {
            Some(file) => format!("sqlite:{}", self.file(file).display()),
            None => address.to_owned(),
        };
        let refrain = Refrain::at(&address, "refrain").unwrap().job(Definition::of(Noop).unwrap());
        let refrain = refrain.open().await.unwrap();
        let offers = offers.iter().map(|(key, payload)| (*key, Some(*payload)));
        let offered = refrain.enqueue_many("noop", offers).await.unwrap();
        assert!(offered.iter().all(|one| one.is_new()));
        refrain.close().await;
    }
}

/// Runs a command to its end.
pub(crate) fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Said {
    /// Ended with this code, and with all of these words on stderr.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in {self:?}");
        }
    }

    #[track_caller]
    pub(crate) fn succeeds(&self, words: &[&str]) {
        assert_eq!(self.code, Some(0), "{self:?}");
        for word in words {
            assert!(self.stdout.contains(word), "{word:?} is not in {self:?}");
        }
    }
}

/// The job as its callers know it: by its name.
struct Noop;

impl Job for Noop {
    const NAME: &'static str = "noop";

    async fn run(&self, _: &mut Run) -> Result<(), JobError> {
        Ok(())
    }
}
