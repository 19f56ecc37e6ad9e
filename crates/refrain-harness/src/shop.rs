//! A folder with a project in it, the database that its jobs write to, and what can be seen of both from outside.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use refrain::{Ask, Error, Project, Refrain, RunReport};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection, Executor, SqliteConnection};
use tempfile::TempDir;

use crate::TestDatabase;
use crate::children::ChildProcess;
use crate::programs::program;
use crate::work::SETTINGS;

pub struct Shop {
    pub database: TestDatabase,
    folder: TempDir,
    migrated: Mutex<Option<Migrated>>,
}

/// The settings of a project, and the databases that its jobs write to.
type Migrated = (String, Vec<String>);

impl Shop {
    /// A project with one database, which is called `shop`. A store on a server stands in it; one in a file does not.
    pub fn of(database: TestDatabase) -> Shop {
        let shop = Shop { database, folder: tempfile::tempdir().unwrap(), migrated: Mutex::default() };
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

    /// The same of a project of another name.
    pub fn settings_of(&self, name: &str, store: &str, databases: &str) {
        let text =
            format!("[project]\nname = \"{name}\"\n[store]\nurl = \"{store}\"\n[databases]\n{databases}\n");
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
        let when = "schedule = \"@daily\"\nwindow = \"day\"\nstart = 2020-06-01\ncatch-up = \"all\"";
        self.job(name, &format!("{when}\n{more}\nsql = \"\"\"{sql}\"\"\"\n"));
    }

    pub fn remove(&self, job: &str) {
        fs::remove_file(self.root().join(format!("jobs/{job}.toml"))).unwrap();
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        fs::read_to_string(self.root().join(name)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// The project as it is now, its tables made and its store open.
    pub async fn open(&self) -> Refrain {
        self.opened().await.unwrap()
    }

    /// Makes all tables, and puts no timetable in force.
    pub async fn prepare(&self) {
        let project = Project::load(self.root()).unwrap();
        self.migrate(&project).await.unwrap();
        project.close().await;
    }

    /// Makes the tables that are missing. Where settings and destinations are those of the last time, none is, and no
    /// connection is opened: most stories come here a dozen times.
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

    /// Asks for one run of the project as it is now.
    pub async fn run(&self, name: &str, ask: Ask) -> RunReport {
        let refrain = self.open().await;
        let report = refrain.run(name, ask).await.unwrap();
        refrain.close().await;
        report
    }

    /// Statements of the shop itself.
    pub async fn execute(&self, text: &str) {
        match &self.database {
            TestDatabase::Sqlite { pool, .. } => drop(pool.execute(AssertSqlSafe(text)).await.unwrap()),
            TestDatabase::Postgres { pool, .. } => drop(pool.execute(AssertSqlSafe(text)).await.unwrap()),
        }
    }

    /// The only column of a query of the shop, as text.
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

    /// Lets the leases of all workers run out. The lease of a process that is to die at a place is long, so that it gets
    /// there on a slow machine too.
    pub async fn expire(&self) {
        self.at_the_store("update refrain_workers set expires_at = 1").await;
    }

    /// Writes to the store behind its back; tables are named as on SQLite.
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

    /// Runs such a process, which must end well. Gives what it printed.
    pub async fn done(&self, arguments: &[&str]) -> String {
        self.done_with(arguments, &[]).await
    }

    pub async fn done_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self.process(arguments, variables).finish().await;
        let [said, failed] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        assert!(output.status.success(), "{arguments:?} ended with {}: {said}\n{failed}", output.status);
        said
    }
}

/// A clock for schedules that shows one time.
pub fn standing_at(time: &str) -> String {
    format!("{time} {time} 0 {time}")
}
