//! A folder with a project in it, the database that its jobs write to, and what a test can observe
//! of both from outside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use refrain::project::Project;
use refrain::{Ask, Error, Refrain, RunReport};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection};
use tempfile::TempDir;

use crate::TestDatabase;
use crate::children::ChildProcess;
use crate::programs::program;
use crate::work::SETTINGS;

pub struct TestProject {
    pub database: TestDatabase,
    folder: TempDir,
    migrated: Mutex<Option<Migrated>>,
}

/// The settings of a project, and the databases that its jobs write to.
type Migrated = (String, Vec<String>);

impl TestProject {
    /// A project with one database, called `shop`. On a server the store is in the same database; a SQLite store has its own file.
    pub fn of(database: TestDatabase) -> TestProject {
        let shop = TestProject { database, folder: tempfile::tempdir().unwrap(), migrated: Mutex::default() };
        let url = shop.database.url();
        let store = if shop.database.is_sqlite() { "sqlite:refrain.db" } else { &url };
        shop.settings(store, &format!("shop = \"{url}\""));
        shop
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn settings(&self, store: &str, databases: &str) {
        self.settings_of("shop", store, databases);
    }

    /// Writes the settings of a project with another name.
    pub fn settings_of(&self, name: &str, store: &str, databases: &str) {
        let text = format!(
            r#"
                [project]
                name = "{name}"
                [store]
                url = "{store}"
                [databases]
                {databases}
            "#
        );
        self.write("refrain.toml", &text);
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.root().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program in the project.
    pub fn program(&self, name: &str, text: &str) {
        self.write(name, text);
        fs::set_permissions(self.root().join(name), PermissionsExt::from_mode(0o755)).unwrap();
    }

    pub fn job(&self, name: &str, text: &str) {
        self.write(&format!("jobs/{name}.toml"), text);
    }

    /// A job with a window for each day from the first of June 2020 on, which executes these statements.
    pub fn daily(&self, name: &str, sql: &str, more: &str) {
        let when = r#"
            schedule = "@daily"
            window = "day"
            start = 2020-06-01
            catch-up = "all"
        "#;
        self.job(name, &format!("{when}\n{more}\nsql = \"\"\"{sql}\"\"\"\n"));
    }

    pub fn remove(&self, job: &str) {
        fs::remove_file(self.root().join(format!("jobs/{job}.toml"))).unwrap();
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.root().join(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Opens the store of the current project, after creating its tables.
    pub async fn open(&self) -> Refrain {
        self.opened().await.unwrap()
    }

    /// Creates all tables without putting a schedule in force.
    pub async fn prepare(&self) {
        let project = Project::load(self.root()).unwrap();
        self.migrate(&project).await.unwrap();
        project.close().await;
    }

    /// Creates missing tables. If settings and destinations are unchanged since the last call, this opens no
    /// connection: most tests call it a dozen times.
    async fn migrate(&self, project: &Project) -> Result<(), Error> {
        let destinations = project.destinations().into_iter().map(str::to_owned).collect();
        let wanted = (fs::read_to_string(self.root().join("refrain.toml")).unwrap(), destinations);
        if self.migrated.lock().unwrap().as_ref() == Some(&wanted) {
            return Ok(());
        }
        project.opening(None).await?.migrate().await?;
        project.migrate().await?;
        *self.migrated.lock().unwrap() = Some(wanted);
        Ok(())
    }

    pub async fn opened(&self) -> Result<Refrain, Error> {
        let project = Project::load(self.root()).unwrap();
        self.migrate(&project).await?;
        project.opening(None).await?.settings(SETTINGS).open().await
    }

    /// Requests one run of the current project.
    pub async fn run(&self, name: &str, ask: Ask) -> RunReport {
        let refrain = self.open().await;
        let report = refrain.run(name, ask).await.unwrap();
        refrain.close().await;
        report
    }

    /// Executes statements in the database of the shop.
    pub async fn execute(&self, text: &str) {
        match &self.database {
            TestDatabase::Sqlite { pool, .. } => drop(pool.execute(AssertSqlSafe(text)).await.unwrap()),
            TestDatabase::Postgres { pool, .. } => drop(pool.execute(AssertSqlSafe(text)).await.unwrap()),
        }
    }

    /// The only column of a query in the database of the shop, as text.
    pub async fn rows(&self, query: &str) -> Vec<String> {
        let query = AssertSqlSafe(query);
        match &self.database {
            TestDatabase::Sqlite { pool, .. } => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
            TestDatabase::Postgres { pool, .. } => sqlx::query_scalar(query).fetch_all(pool).await.unwrap(),
        }
    }

    /// One of two texts, by the database.
    pub fn either<'t>(&self, sqlite: &'t str, postgres: &'t str) -> &'t str {
        if self.database.is_sqlite() { sqlite } else { postgres }
    }

    /// A process of its own that works on the project; its variables may arm failpoints.
    pub fn process(&self, arguments: &[&str], variables: &[(&str, &str)]) -> ChildProcess {
        let mut command = Command::new(program("project"));
        command.arg(self.root()).args(arguments).envs(variables.iter().copied());
        command.env("REFRAIN_FAILPOINT_LOG", self.root().join("struck"));
        ChildProcess::spawn(&mut command)
    }

    /// Expires the leases of all workers. A process that is to be killed at a place has a long lease, so that it gets
    /// there on a slow machine too.
    pub async fn expire(&self) {
        self.at_the_store("update refrain_workers set expires_at = 1").await;
    }

    /// Writes to the tables of the store, with their SQLite names.
    pub async fn at_the_store(&self, text: &str) {
        if self.database.is_sqlite() {
            let store = SqliteConnectOptions::new().filename(self.root().join("refrain.db"));
            let mut store = SqliteConnection::connect_with(&store).await.unwrap();
            store.execute(AssertSqlSafe(text)).await.unwrap();
            store.close().await.unwrap();
        } else {
            self.database.store(text).await;
        }
    }

    /// Runs such a process, which must succeed. Returns its output.
    pub async fn done(&self, arguments: &[&str]) -> String {
        self.done_with(arguments, &[]).await
    }

    pub async fn done_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self.process(arguments, variables).finish().await;
        let [message, failed] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success(), "{arguments:?} ended with {}: {message}\n{failed}", output.status);
        message
    }
}

/// A clock for schedules that shows one time.
pub fn stopped_clock(time: &str) -> String {
    format!("{time} {time} 0 {time}")
}
