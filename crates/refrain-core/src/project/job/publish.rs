//! The results of a job. A window may replace only rows that no other window owns, or two windows would undo one another.

use super::{JobReader, texts};
use crate::project::document::{Entries, LocatedText, Value};
use crate::project::names::Names;
use crate::project::problem::Problem;
use crate::project::sql::Sql;
use crate::publish::directory::unfit_path;
use crate::publish::{FilesPublish, Mode, Publish, PublishStep, TableName, TablePublish};
use crate::state::OnChange;
use crate::{Grid, Timetable};

/// How many ticks are checked to see whether two fall on one date.
const TICKS_LOOKED_AT: usize = 60;

/// Keys that are useful only for tables.
const OF_A_TABLE: [&str; 14] = [
    "database",
    "mode",
    "owns",
    "key",
    "columns",
    "surrogate",
    "check",
    "stamp",
    "delete-missing",
    "insert-missing",
    "per",
    "on-change",
    "ledger",
    "view",
];

/// The modes that write whole rows.
const ROWS: &[Mode] = &[Mode::Overwrite, Mode::Merge, Mode::AppendOnce, Mode::Land];

/// Keys that only some modes support, and the advice for the others.
const ONLY_WITH: [(&str, &[Mode], &str); 8] = [
    ("columns", &[Mode::ApplyDelta], "leave it out: the columns are those of the query"),
    ("delete-missing", &[Mode::Merge], "leave it out"),
    ("insert-missing", &[Mode::ApplyDelta], "leave it out"),
    ("per", &[Mode::AppendOnce], "leave it out"),
    ("on-change", &[Mode::AppendOnce], "leave it out: the result replaces existing rows"),
    ("surrogate", ROWS, "leave it out: this mode does not write whole rows"),
    ("stamp", ROWS, "leave it out: this mode does not write whole rows"),
    ("view", &[Mode::Land], "leave it out, or write mode = \"land\""),
];

/// All outputs of a job.
#[derive(Default)]
pub(super) struct JobOutputs {
    pub(super) result: Option<Publish>,
    pub(super) steps: Vec<PublishStep>,
    /// The overwritten tables: database, table, and the position of the declaration.
    pub(super) overwrites: Vec<(String, String, LocatedText)>,
    /// The directories that files are published into.
    paths: Vec<String>,
}

impl JobReader<'_> {
    /// Checks and builds all outputs.
    pub(super) fn publishes(&mut self, names: Names, timetable: Option<&Timetable>) -> JobOutputs {
        if let Some(leaves) = self.table("digest").and_then(|digest| digest.text("leaves")) {
            self.query(&leaves, names);
        }
        let mut published = JobOutputs::default();
        for step in self.entries.get("step").and_then(Value::list).unwrap_or_default() {
            let Some(step) = step.table() else { continue };
            let query = step.text("query").and_then(|query| self.query(&query, names));
            let publish = step.get("publish").and_then(Value::table);
            let publish =
                publish.and_then(|publish| self.publish(&publish, names, timetable, &mut published));
            published.steps.extend(query.zip(publish).map(|(query, publish)| PublishStep { query, publish }));
        }
        self.differences(&published.steps);
        if let Some(publish) = self.table("publish") {
            published.result = self.publish(&publish, names, timetable, &mut published);
        }
        published
    }

    /// Two steps that add to one column would each take the other's amounts for their own; of two steps that overwrite the same
    /// rows, only the second would be visible.
    fn differences(&mut self, steps: &[PublishStep]) {
        let mut known: Vec<(&str, &TableName, &String)> = Vec::new();
        let mut replaced: Vec<(&String, &TableName, Option<&str>)> = Vec::new();
        for step in steps {
            let Publish::Table(publish) = &step.publish else { continue };
            let place = (&publish.database, &publish.table, publish.owns.as_ref().map(Sql::text));
            if publish.mode == Mode::Overwrite && replaced.contains(&place) {
                let message = format!("two steps overwrite the same rows of `{}`", publish.table);
                let help = "write one query that returns the rows of both";
                self.problem("step", message, "the second would overwrite the first", help);
            }
            if publish.mode == Mode::Overwrite {
                replaced.push(place);
            }
            if publish.mode != Mode::ApplyDelta {
                continue;
            }
            for column in &publish.columns {
                let place = (publish.database.as_str(), &publish.table, column);
                if known.contains(&place) {
                    let message = format!("two steps add to `{column}` of `{}`", publish.table);
                    let help = "write one query that returns the sum of both";
                    self.problem("step", message, "the second would overwrite the first", help);
                }
                known.push(place);
            }
        }
    }

    fn publish(
        &mut self,
        publish: &Entries<'_>,
        names: Names,
        timetable: Option<&Timetable>,
        published: &mut JobOutputs,
    ) -> Option<Publish> {
        match (publish.text("table"), publish.text("path")) {
            (Some(table), None) => {
                let publish = self.table_publish(publish, &table, names, timetable)?;
                if publish.mode == Mode::Overwrite {
                    let name = publish.table.to_string().to_lowercase();
                    published.overwrites.push((publish.database.clone(), name, table));
                }
                Some(Publish::Table(Box::new(publish)))
            }
            (None, Some(path)) => {
                let directory = path.value.trim_end_matches('/').to_owned();
                if published.paths.contains(&directory) {
                    let problem =
                        path.wrong("two results go into one directory", "the second would replace the first");
                    self.problems.push(problem.help("give each a directory of its own"));
                }
                published.paths.push(directory);
                self.files_publish(publish, &path, names, timetable).map(Publish::Files)
            }
            (Some(_), Some(path)) => {
                let problem = path.wrong("`table` and `path` cannot both be set", "`table` is set already");
                self.problems.push(problem.help("leave `table` or `path` out"));
                None
            }
            (None, None) => {
                let problem = Problem::new(
                    publish.path(),
                    publish.span(),
                    "[publish] needs `table` or `path`",
                    "neither `table` nor `path`",
                );
                self.problems.push(problem.help("add table = \"revenue_daily\""));
                None
            }
        }
    }

    fn table_publish(
        &mut self,
        publish: &Entries<'_>,
        table: &LocatedText,
        names: Names,
        timetable: Option<&Timetable>,
    ) -> Option<TablePublish> {
        let database = match publish.text("database") {
            Some(database) => self.known_database(&database),
            None => self.database.clone().or_else(|| self.only_database("publish")),
        };
        let owns = publish.text("owns").and_then(|text| {
            let sql = self.expression("owns", &text, database.as_deref(), names)?;
            self.owns(&text, &sql.names(), timetable);
            Some(sql)
        });
        let checks = texts(publish, "check").into_iter();
        let checks = checks.filter_map(|text| self.expression("check", &text, database.as_deref(), names));
        let checks = checks.collect();
        let name = self.table_name(table, "table");
        let view = publish.text("view");
        if let Some(view) = view.as_ref().filter(|view| view.value.eq_ignore_ascii_case(&table.value)) {
            let problem = view.wrong("`view` is the table itself", "the same name");
            self.problems.push(problem.help("give the view a name of its own"));
        }
        let view = view.and_then(|view| self.table_name(&view, "view"));
        let Some(word) = publish.text("mode") else {
            if !publish.has("mode") {
                let problem =
                    Problem::new(publish.path(), publish.span(), "`mode` is missing", "in this table");
                self.problems.push(problem.help("add mode = \"overwrite\""));
            }
            return None;
        };
        let mode: Mode = word.value.parse().ok()?;
        self.needed_by(publish, &word, mode);
        let flag = |key: &str| publish.get(key).and_then(Value::flag);
        let columns = |key: &str| texts(publish, key).into_iter().map(|text| text.value).collect();
        Some(TablePublish {
            database: database?,
            table: name?,
            mode,
            owns,
            key: columns("key"),
            columns: columns("columns"),
            surrogate: surrogates(publish),
            checks,
            stamp: publish.text("stamp").map(|text| text.value),
            delete_missing: flag("delete-missing").unwrap_or(false),
            insert_missing: flag("insert-missing").unwrap_or(false),
            per: publish.text("per").and_then(|per| per.value.parse().ok()).unwrap_or(self.usual_per()),
            on_change: self.on_change_of(publish, mode, OnChange::Reject),
            has_ledger: flag("ledger").unwrap_or(true),
            view,
        })
    }

    /// What different content under a known key means, in this table of the file. A row that is only ever added cannot be
    /// updated, and a second one would be a duplicate.
    pub(super) fn on_change_of(&mut self, entries: &Entries<'_>, mode: Mode, default: OnChange) -> OnChange {
        let Some(word) = entries.text("on-change") else { return default };
        let on_change = word.value.parse().unwrap_or(default);
        if (mode, on_change) == (Mode::AppendOnce, OnChange::Update) {
            let problem = word.wrong("`append-once` never changes a row", "this would change it");
            let help =
                "write \"reject\" (an error), \"first\" (the first content stays), or mode = \"merge\"";
            self.problems.push(problem.help(help));
        }
        on_change
    }

    fn table_name(&mut self, text: &LocatedText, what: &str) -> Option<TableName> {
        match TableName::parse(&text.value) {
            Ok(name) => Some(name),
            Err(error) => {
                self.problems.push(text.unreadable(format!("this is not a valid {what} name"), &error));
                None
            }
        }
    }

    fn files_publish(
        &mut self,
        publish: &Entries<'_>,
        path: &LocatedText,
        names: Names,
        timetable: Option<&Timetable>,
    ) -> Option<FilesPublish> {
        for key in OF_A_TABLE.into_iter().filter(|key| publish.has(key)) {
            let message = format!("`{key}` has no effect without a table");
            let problem =
                Problem::new(publish.path(), publish.key_span(key), message, "this goes into files");
            self.problems.push(problem.help("leave it out"));
        }
        let template = self.template(path, names)?;
        if let Some(why) = unfit_path(&path.value) {
            let problem = path.wrong("`path` is not a valid directory", why);
            self.problems.push(
                problem.help("name a directory that holds only the files of this run: \"out/dt={ds}\""),
            );
            return None;
        }
        let bound: Vec<&str> = template.names().collect();
        self.own_place("path", path, &bound, timetable);
        let format = publish.text("format").and_then(|word| word.value.parse().ok()).unwrap_or_default();
        Some(FilesPublish { path: template, format })
    }

    fn expression(
        &mut self,
        key: &str,
        text: &LocatedText,
        database: Option<&str>,
        names: Names,
    ) -> Option<Sql> {
        match Sql::parse(&text.value, self.dialect(database)) {
            Ok(sql) => {
                self.binds(text, &sql, names);
                Some(sql)
            }
            Err(error) => {
                self.problems.push(text.unreadable(format!("`{key}` cannot be read as SQL"), &error));
                None
            }
        }
    }

    fn needed_by(&mut self, publish: &Entries<'_>, word: &LocatedText, mode: Mode) {
        const KEY: (&str, &str) = ("key", "add key = [\"id\"]: the columns that identify a row");
        let has_units = self.is_feed();
        let is_bulk = publish.get("ledger").and_then(Value::flag) == Some(false);
        let needed: &[(&str, &str)] = match mode {
            Mode::Overwrite => &[("owns", "add owns = \"order_date = :ds\": the rows that this window owns")],
            Mode::Merge if publish.get("delete-missing").and_then(Value::flag) == Some(true) => {
                &[KEY, ("owns", "add owns = \"order_date = :ds\": only rows that it owns may be deleted")]
            }
            Mode::Merge => &[KEY],
            // Without an entry for each unit, only the table can tell whether a row exists.
            Mode::AppendOnce if !has_units || is_bulk => &[KEY],
            Mode::ApplyDelta => {
                &[KEY, ("columns", "add columns = [\"qty\"]: the columns that the difference is applied to")]
            }
            Mode::AppendOnce | Mode::Land => &[],
        };
        for (key, help) in needed.iter().filter(|(key, _)| !publish.has(key)) {
            let message = format!("`{mode}` needs `{key}`");
            self.problems.push(word.wrong(message, format!("`{key}` is missing")).help(*help));
        }
        for (key, modes, help) in ONLY_WITH {
            if publish.has(key) && !modes.contains(&mode) {
                let message = format!("`{key}` has no effect with mode = \"{mode}\"");
                let problem =
                    Problem::new(publish.path(), publish.key_span(key), message, "has no effect here");
                self.problems.push(problem.help(help));
            }
        }
        if has_units && matches!(mode, Mode::Overwrite | Mode::ApplyDelta) {
            let problem = word.wrong(
                format!("`{mode}` replaces all rows of a window, but units arrive one by one"),
                "not with units",
            );
            self.problems.push(problem.help("write \"merge\", \"append-once\" or \"land\""));
        }
        for key in
            ["delete-missing", "per", "on-change"].into_iter().filter(|key| has_units && publish.has(key))
        {
            let message = format!("`{key}` has no effect with units");
            let problem =
                Problem::new(publish.path(), publish.key_span(key), message, "units arrive one by one");
            let help = if key == "delete-missing" { "leave it out" } else { "write it in [unit]" };
            self.problems.push(problem.help(help));
        }
        if publish.has("ledger") && !has_units {
            let message = "`ledger` needs units, and this job has none";
            let problem = Problem::new(publish.path(), publish.key_span("ledger"), message, "no units");
            self.problems.push(problem.help("leave it out"));
        }
    }

    /// Checks that a window owns only rows of its own.
    fn owns(&mut self, text: &LocatedText, bound: &[&str], timetable: Option<&Timetable>) {
        self.own_place("owns", text, bound, timetable);
    }

    /// Checks that two windows, or two scopes, never mean the same rows or directory.
    fn own_place(&mut self, key: &str, text: &LocatedText, bound: &[&str], timetable: Option<&Timetable>) {
        let (day, part, scope) = match key {
            "owns" => (
                "\"order_date = :ds\"".to_owned(),
                "\"at >= :window_start and at < :window_end\"".to_owned(),
                format!("\"{} and org_id = :scope\"", text.value),
            ),
            _ => (
                "\"out/dt={ds}\"".to_owned(),
                "\"out/at={window_start}\"".to_owned(),
                format!("\"{}/org={{scope}}\"", text.value.trim_end_matches('/')),
            ),
        };
        let binds = |name: &str| bound.contains(&name);
        let binds_window = binds("window_start") || binds("window_end");
        let message = format!("`{key}` does not distinguish windows");
        if let Some(timetable) = timetable {
            if !binds_window && !binds("ds") {
                let problem = text.wrong(message, "does not bind the window");
                self.problems.push(problem.help(format!("bind the window, as in {day}")));
            } else if !binds_window && !one_window_a_date(timetable) {
                let problem = text.wrong(message, "several windows of one date own the same rows");
                self.problems.push(problem.help(format!("bind its start and its end, as in {part}")));
            }
        }
        if self.has("scopes") && !binds("scope") {
            let message = format!("`{key}` does not distinguish scopes");
            let problem = text.wrong(message, "does not bind the scope");
            self.problems.push(problem.help(format!("add the scope, as in {scope}")));
        }
    }
}

fn surrogates(publish: &Entries<'_>) -> Vec<(String, Vec<String>)> {
    let Some(table) = publish.get("surrogate").and_then(Value::table) else { return Vec::new() };
    let names = table.iter().map(|(column, ..)| column.to_owned());
    names
        .map(|column| (column.clone(), texts(&table, &column).into_iter().map(|text| text.value).collect()))
        .collect()
}

fn one_window_a_date(timetable: &Timetable) -> bool {
    match timetable.grid {
        Grid::Day | Grid::Week | Grid::Month => true,
        Grid::Part(_) => false,
        Grid::Tick => {
            let ticks = timetable.ticks();
            let first = ticks.after(jiff::Timestamp::UNIX_EPOCH);
            let ticks = std::iter::successors(first, |tick| ticks.after(*tick)).take(TICKS_LOOKED_AT);
            let mut dates: Vec<_> = ticks.map(|tick| timetable.zone.wall(tick).date()).collect();
            let ticks = dates.len();
            dates.dedup();
            dates.len() == ticks
        }
    }
}
