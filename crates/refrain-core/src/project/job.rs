//! The second pass over a job file: builds values from the valid parts and checks how they fit together.
//!
//! A value that the first pass could not read counts as absent here, so each mistake is reported once.

mod action;
mod argv;
mod call;
mod effect;
mod publish;
mod units;
mod when;

use std::time::Duration;

use super::document::{Entries, LocatedText, Value};
use super::names::{Names, Written};
use super::problem::{Problem, SourceFile};
use super::settings::ProjectSettings;
use super::sql::{Dialect, Sql};
use super::{Files, Interrupted, JobFile, TIMEOUT, environment, suggest};
use crate::publish::Publish;
use crate::{Backoff, JobName, Retry, Template, duration};

/// A job file, and the facts that other files need about it.
pub(crate) struct ReadJob {
    pub(crate) job: Option<JobFile>,
    pub(crate) formerly: Vec<(JobName, LocatedText)>,
    pub(crate) after: Vec<(JobName, LocatedText)>,
    /// The tables that it overwrites: database, table, and the position of the declaration.
    pub(crate) overwrites: Vec<(String, String, LocatedText)>,
}

/// Reads one job.
pub(crate) struct JobReader<'r> {
    pub(crate) name: &'r str,
    pub(crate) entries: Entries<'r>,
    pub(crate) settings: &'r ProjectSettings,
    pub(crate) files: &'r Files<'r>,
    pub(crate) problems: &'r mut Vec<Problem>,
    /// The database for statements that do not name one.
    database: Option<String>,
}

impl<'r> JobReader<'r> {
    pub(crate) fn new(
        name: &'r str,
        entries: Entries<'r>,
        settings: &'r ProjectSettings,
        files: &'r Files<'r>,
        problems: &'r mut Vec<Problem>,
    ) -> JobReader<'r> {
        JobReader { name, entries, settings, files, problems, database: None }
    }

    pub(crate) fn read(mut self) -> ReadJob {
        self.database = self.database();
        let timetable = self.timetable();
        let names = self.names();
        let scopes =
            self.text("scopes").and_then(|scopes| self.query(&scopes, Names { finds_scopes: true, ..names }));
        self.belongs_together();
        let published = self.publishes(names, timetable.as_ref());
        let overwrites = published.overwrites.clone();
        let files = match &published.result {
            Some(Publish::Files(files)) if self.has("command") => Some(files.clone()),
            _ => None,
        };
        let action = self.action(names, published);
        self.effects(names);
        let formerly = self.job_names("formerly");
        let job = JobName::parse(self.name).ok().zip(action).map(|(name, action)| JobFile {
            name,
            path: self.entries.path().to_owned(),
            timetable,
            queue: self.flag("queue"),
            catch_up: self.catch_up(),
            while_running: self.word("while-running"),
            version: self.number("version").unwrap_or(1),
            retry: self.retry(),
            timeout: self.length("timeout").unwrap_or(TIMEOUT),
            concurrency: self.number("concurrency"),
            grace: self.length("grace"),
            formerly: formerly.iter().map(|(name, _)| name.clone()).collect(),
            database: self.database.clone(),
            scopes,
            action,
            files,
            interrupted: self.word::<Interrupted>("interrupted"),
            environment: self.texts("env").into_iter().map(|name| name.value).collect(),
        });
        ReadJob { job, formerly, after: self.job_names("after"), overwrites }
    }

    fn has(&self, key: &str) -> bool {
        self.entries.has(key)
    }

    fn text(&self, key: &str) -> Option<LocatedText> {
        self.entries.text(key)
    }

    fn flag(&self, key: &str) -> bool {
        self.entries.get(key).and_then(Value::flag).unwrap_or(false)
    }

    fn number(&self, key: &str) -> Option<u32> {
        number(&self.entries, key)
    }

    fn length(&self, key: &str) -> Option<Duration> {
        duration::parse(&self.text(key)?.value).ok()
    }

    fn word<W: std::str::FromStr + Default>(&self, key: &str) -> W {
        self.text(key).and_then(|text| text.value.parse().ok()).unwrap_or_default()
    }

    fn table(&self, key: &str) -> Option<Entries<'r>> {
        self.entries.get(key)?.table()
    }

    fn texts(&self, key: &str) -> Vec<LocatedText> {
        texts(&self.entries, key)
    }

    fn retry(&self) -> Retry {
        let usual = Retry::default();
        let Some(table) = self.table("retry") else { return usual };
        let backoff = table.text("backoff").and_then(|text| Backoff::parse(&text.value).ok());
        Retry {
            attempts: number(&table, "attempts").unwrap_or(usual.attempts),
            backoff: backoff.unwrap_or(usual.backoff),
        }
    }

    fn job_names(&self, key: &str) -> Vec<(JobName, LocatedText)> {
        let texts = self.text(key).into_iter().chain(self.texts(key));
        texts.filter_map(|text| Some((JobName::parse(&text.value).ok()?, text))).collect()
    }

    /// The names that have a value in this job's runs.
    fn names(&self) -> Names {
        Names {
            windows: !self.flag("queue"),
            scopes: self.has("scopes"),
            finds_scopes: false,
            payload: self.flag("queue"),
            watermark: self.has("watermark"),
            cursor: self.has("cursor"),
            fields: false,
        }
    }

    fn problem(&mut self, key: &str, message: impl Into<String>, label: &str, help: impl Into<String>) {
        let span = self.entries.key_span(key);
        self.problems.push(Problem::new(self.entries.path(), span, message, label).help(help));
    }

    /// The named database, or the only one of the project.
    fn database(&mut self) -> Option<String> {
        if !self.settings.is_whole {
            return None;
        }
        if let Some(text) = self.text("database") {
            return self.known_database(&text);
        }
        let speaks_sql =
            ["sql", "scopes", "query", "step", "digest"].into_iter().find(|key| self.has(key))?;
        self.only_database(speaks_sql)
    }

    /// The only database of the project, for a part of the file that needs one and names none.
    fn only_database(&mut self, speaks_sql: &str) -> Option<String> {
        if !self.settings.is_whole {
            return None;
        }
        match self.settings.database_names.as_slice() {
            [only] => return Some(only.clone()),
            [] => self.problem(
                speaks_sql,
                format!("`{speaks_sql}` needs a database, and the project has none"),
                "which database?",
                "add [databases] with shop = \"sqlite:shop.db\" to refrain.toml",
            ),
            several => {
                let written: Vec<String> =
                    several.iter().map(|name| format!("database = \"{name}\"")).collect();
                let written = suggest::list(written.iter().map(String::as_str), "");
                let message =
                    format!("`{speaks_sql}` needs a database, and the project has {}", several.len());
                self.problem(speaks_sql, message, "which database?", format!("add {written}"));
            }
        }
        None
    }

    fn known_database(&mut self, text: &LocatedText) -> Option<String> {
        let known = &self.settings.database_names;
        if known.contains(&text.value) || !self.settings.is_whole {
            return Some(text.value.clone());
        }
        let help = match suggest::nearest(&text.value, known.iter().map(String::as_str)) {
            Some(name) => format!("did you mean \"{name}\"?"),
            None if known.is_empty() => {
                format!("add [databases] with {} = \"sqlite:shop.db\" to refrain.toml", text.value)
            }
            None => format!("known databases: {}", known.join(", ")),
        };
        let message = format!("there is no database `{}` in refrain.toml", text.value);
        self.problems.push(text.wrong(message, "unknown database").help(help));
        None
    }

    fn dialect(&self, database: Option<&str>) -> Dialect {
        let database = database.and_then(|name| self.settings.databases.get(name));
        database.map_or(Dialect::Sqlite, |database| database.dialect)
    }

    /// The text of a statement: given inline, or read from the file that is named.
    fn sql_text(&mut self, text: &LocatedText) -> Option<LocatedText> {
        let name = text.value.trim();
        let is_file = name.to_ascii_lowercase().ends_with(".sql") && !name.contains(char::is_whitespace);
        if !is_file {
            return Some(text.clone());
        }
        if name.starts_with('.') || name.contains(['/', '\\']) {
            let problem = text.wrong("this is not a file next to the job file", "a path");
            self.problems.push(problem.help("put the file next to the job file, and write only its name"));
            return None;
        }
        let sql = match (self.files.sibling)(name) {
            Some(Ok(sql)) => sql,
            Some(Err(reason)) => {
                let message = format!("`{name}` cannot be read: {reason}");
                self.problems.push(text.wrong(message, "this file"));
                return None;
            }
            None => {
                let problem =
                    text.wrong(format!("there is no file `{name}` next to the job file"), "no such file");
                self.problems.push(problem.help("create it, or write the SQL here"));
                return None;
            }
        };
        let folder = text.path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let sql = LocatedText::of_file(SourceFile::new(format!("{folder}{name}"), sql));
        for reference in environment::references(&sql.value) {
            let problem =
                sql.problem(reference.span, "SQL does not expand environment variables", "not expanded");
            self.problems.push(problem.help("values reach SQL as binds only, as in :ds or :scope"));
        }
        Some(sql)
    }

    /// Statements in which every name has a value.
    fn statements(&mut self, text: &LocatedText, names: Names) -> Option<Vec<Sql>> {
        let text = self.sql_text(text).filter(|text| environment::references(&text.value).is_empty())?;
        let dialect = self.dialect(self.database.as_deref());
        let statements = match Sql::parse_all(&text.value, dialect) {
            Ok(statements) => statements,
            Err(error) => {
                self.problems.push(text.unreadable("this SQL cannot be read", &error));
                return None;
            }
        };
        for sql in &statements {
            self.binds(&text, sql, names);
        }
        Some(statements)
    }

    /// A single query in which every name has a value.
    fn query(&mut self, text: &LocatedText, names: Names) -> Option<Sql> {
        let mut statements = self.statements(text, names)?;
        if statements.len() == 1 {
            return statements.pop();
        }
        let problem = text.wrong("this must be a single statement", "more than one statement");
        self.problems.push(problem.help("write one statement"));
        None
    }

    fn binds(&mut self, text: &LocatedText, sql: &Sql, names: Names) {
        for bind in sql.binds() {
            if let Some(fault) = names.refuse(&bind.name, Written::AfterColon) {
                let span = sql.at + bind.span.start..sql.at + bind.span.end;
                self.problems.push(text.problem(span, fault.message, fault.label).help(fault.help));
            }
        }
    }

    /// A template in which every name has a value.
    fn template(&mut self, text: &LocatedText, names: Names) -> Option<Template> {
        let is_reported = !environment::references(&text.value).is_empty();
        let template = Template::parse(&text.value).ok().filter(|_| !is_reported)?;
        self.placeholders(text, template.places(), names);
        Some(template)
    }

    fn placeholders<'t>(
        &mut self,
        text: &LocatedText,
        places: impl Iterator<Item = (&'t str, std::ops::Range<usize>)>,
        names: Names,
    ) {
        for (name, span) in places {
            if let Some(fault) = names.refuse(name, Written::InBraces) {
                self.problems.push(text.problem(span, fault.message, fault.label).help(fault.help));
            }
        }
    }
}

fn number(entries: &Entries<'_>, key: &str) -> Option<u32> {
    entries.get(key).and_then(Value::number).and_then(|number| u32::try_from(number).ok())
}

fn texts(entries: &Entries<'_>, key: &str) -> Vec<LocatedText> {
    let list = entries.get(key).and_then(Value::list).unwrap_or_default();
    list.into_iter().filter_map(Value::text).collect()
}
