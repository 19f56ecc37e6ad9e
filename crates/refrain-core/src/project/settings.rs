//! The second pass over `refrain.toml`: URLs with environment variables filled in.

use std::collections::BTreeMap;

use super::document::{Document, Entries, LocatedText, Value};
use super::environment;
use super::problem::Problem;
use super::sql::Dialect;
use super::{DatabaseConfig, Files, STORE, TimeForm, Url};
use crate::{JobName, ProjectName};

/// The content of `refrain.toml`.
pub(crate) struct ProjectSettings {
    pub(crate) name: Option<ProjectName>,
    pub(crate) store: Url,
    pub(crate) databases: BTreeMap<String, DatabaseConfig>,
    /// All database names, including those with invalid URLs: a job that names one of them is not at fault.
    pub(crate) database_names: Vec<String>,
    /// Whether the whole file could be read; otherwise missing keys are not reported.
    pub(crate) is_whole: bool,
    pub(crate) private_hosts: Vec<String>,
}

pub(crate) fn read(
    document: &Document<'_>,
    files: &Files<'_>,
    problems: &mut Vec<Problem>,
) -> ProjectSettings {
    let root = document.root();
    let below = |table: &str| root.get(table).and_then(Value::table);
    let name = below("project").and_then(|project| project.text("name"));
    let mut reader = SettingsReader { files, problems };
    let store = below("store").and_then(|store| reader.address(&store.text("url")?));
    let databases = below("databases");
    let hosts = below("http").and_then(|http| http.get("allow-private")?.list()).unwrap_or_default();
    ProjectSettings {
        name: name.and_then(|name| ProjectName::parse(&name.value).ok()),
        store: store.map_or_else(|| Url::plain(STORE), |(url, _)| url),
        database_names: databases.iter().flat_map(Entries::iter).map(|(name, ..)| name.to_owned()).collect(),
        databases: databases.map(|databases| reader.databases(&databases)).unwrap_or_default(),
        is_whole: document.faults.is_empty(),
        private_hosts: hosts.into_iter().filter_map(|host| Some(host.text()?.value)).collect(),
    }
}

struct SettingsReader<'r> {
    files: &'r Files<'r>,
    problems: &'r mut Vec<Problem>,
}

impl SettingsReader<'_> {
    fn databases(&mut self, entries: &Entries<'_>) -> BTreeMap<String, DatabaseConfig> {
        let mut databases = BTreeMap::new();
        for (name, span, value) in entries.iter() {
            if let Err(error) = JobName::parse(name) {
                let problem = Problem::new(
                    entries.path(),
                    span,
                    "this cannot be the name of a database",
                    error.reason(),
                );
                self.problems.push(Problem { help: error.advice().map(str::to_owned), ..problem });
            }
            let table = value.table();
            let url = table.as_ref().map_or_else(|| value.text(), |table| table.text("url"));
            let time = table.and_then(|table| table.text("time"));
            if let Some((url, dialect)) = url.and_then(|url| self.address(&url)) {
                let time = time.and_then(|time| time.value.parse::<TimeForm>().ok()).unwrap_or_default();
                databases.insert(name.to_owned(), DatabaseConfig { url, dialect, time });
            }
        }
        databases
    }

    /// Fills environment variables into a URL. Their values are not shown: they may be secret.
    fn address(&mut self, text: &LocatedText) -> Option<(Url, Dialect)> {
        let (value, _) = environment::expand(&text.value, self.files.environment);
        let is_whole = environment::references(&text.value)
            .iter()
            .all(|reference| (self.files.environment)(&reference.name).is_some());
        let Some(dialect) = Dialect::of_url(&value) else {
            if is_whole {
                let label = "it must begin with `sqlite:` or `postgres://`";
                let problem = text.wrong("this is not a valid database URL", label);
                self.problems.push(problem.help("write sqlite:FILE or postgres://USER@HOST/DATABASE"));
            }
            return None;
        };
        let place = Some((text.path.clone(), text.span.clone()));
        let has_plain_password = environment::has_plain_password(&text.value);
        Some((
            Url { value, shown: environment::without_passwords(&text.value), place, has_plain_password },
            dialect,
        ))
    }
}
