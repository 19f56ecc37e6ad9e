//! A directory in which a test types commands, and the store that they share.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, SqliteConnection};
use tempfile::TempDir;

pub(crate) use refrain_harness::{address, black_hole, children, eventually};

pub(crate) mod books;
pub(crate) mod postgres;
pub(crate) mod project;
pub(crate) mod release;
pub(crate) mod terminal;
pub(crate) mod transcript;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_refrain");

/// The folder of a project in which commands are typed; it is removed when it is dropped.
pub(crate) struct Desk {
    directory: TempDir,
    store: Option<String>,
    variables: Vec<(String, String)>,
}

/// The output and the exit code of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Desk {
    /// A desk with the default store, and jobs that do nothing.
    pub(crate) fn new() -> Desk {
        Desk::of(&project::noop("refrain"))
    }

    /// A desk with these files.
    pub(crate) fn of(files: &[(&str, impl AsRef<str>)]) -> Desk {
        let desk = Desk { directory: tempfile::tempdir().unwrap(), store: None, variables: Vec::new() };
        for (name, text) in files {
            desk.write(name, text.as_ref());
        }
        desk
    }

    /// A desk with a store that is named in the environment.
    pub(crate) fn at(store: &str) -> Desk {
        Desk::new().with_store(store)
    }

    /// A desk with these files and a store that is named in the environment.
    pub(crate) fn with_store(self, store: &str) -> Desk {
        Desk { store: Some(store.to_owned()), ..self }
    }

    /// The same desk with a variable of the environment.
    pub(crate) fn with_variable(mut self, name: &str, value: &str) -> Desk {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A desk with a SQLite file in its directory, `store.db`.
    pub(crate) fn sqlite() -> Desk {
        Desk::at("sqlite:store.db")
    }

    /// A project with a database that has two customers.
    pub(crate) async fn shop() -> Desk {
        let desk = Desk::of(&project::SHOP);
        let options = SqliteConnectOptions::new().filename(desk.file("shop.db")).create_if_missing(true);
        let mut connection = SqliteConnection::connect_with(&options).await.unwrap();
        let tables = "create table totals (day text); create table customers (name text);
                      insert into customers (name) values ('bolt'), ('acme')";
        connection.execute(tables).await.unwrap();
        connection.close().await.unwrap();
        desk
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Nothing is due here at any time: a new job right after the hour would open the window that has just ended.
    pub(crate) fn without_hourly(self) -> Desk {
        std::fs::remove_file(self.file("jobs/noop-hourly.toml")).unwrap();
        self
    }

    /// Writes a file of the project; a script may be executed.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Atomic, because a serving process may be reading the folder.
        let part = self.file(".part");
        std::fs::write(&part, text).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        std::fs::set_permissions(&part, Permissions::from_mode(mode)).unwrap();
        std::fs::rename(part, path).unwrap();
    }

    /// The program with its arguments, to be run here.
    pub(crate) fn command(&self, line: &str) -> Command {
        self.command_of(&line.split_whitespace().collect::<Vec<_>>())
    }

    pub(crate) fn command_of(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(arguments).current_dir(self.path());
        command.env_remove("REFRAIN_STORE").env_remove("REFRAIN_PROJECT").env("NO_COLOR", "1");
        command.env("REFRAIN_WHO", "ada@office");
        if let Some(store) = &self.store {
            command.env("REFRAIN_STORE", store);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub(crate) fn refrain(&self, line: &str) -> CommandOutput {
        output_of(&mut self.command(line))
    }

    /// Queues a run with a payload.
    pub(crate) fn enqueue(&self, job: &str, key: &str, payload: &str) {
        let mut enqueue = self.command_of(&["enqueue", job, "--key", key, "--payload", payload]);
        output_of(&mut enqueue).succeeds(&[": queued"]);
    }
}

/// Runs a command to its end.
pub(crate) fn output_of(command: &mut Command) -> CommandOutput {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl CommandOutput {
    /// Asserts this exit code, and that stderr contains all of these texts.
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
