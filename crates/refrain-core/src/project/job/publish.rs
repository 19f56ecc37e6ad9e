//! Where results go. A window may replace only what it alone owns, or two windows would undo one another.

use super::{Reader, texts};
use crate::project::document::{Entries, Text, Value};
use crate::project::names::Names;
use crate::project::sql::Sql;
use crate::{Grid, Timetable};

/// How many ticks are looked at to see whether two fall on one date.
const TICKS_LOOKED_AT: usize = 60;

impl Reader<'_> {
    /// Checks all that is published, and gives what is overwritten: database, table, and where it says so.
    pub(super) fn publishes(
        &mut self,
        names: Names,
        timetable: Option<&Timetable>,
    ) -> Vec<(String, String, Text)> {
        self.units();
        if let Some(leaves) = self.table("digest").and_then(|digest| digest.text("leaves")) {
            self.query(&leaves, names);
        }
        let mut publishes: Vec<Entries<'_>> = self.table("publish").into_iter().collect();
        for step in self.entries.get("step").and_then(Value::list).unwrap_or_default() {
            let Some(step) = step.table() else { continue };
            if let Some(query) = step.text("query") {
                self.query(&query, names);
            }
            publishes.extend(step.get("publish").and_then(Value::table));
        }
        publishes.iter().filter_map(|publish| self.publish(publish, names, timetable)).collect()
    }

    fn units(&mut self) {
        let has_units = self.text("output").is_some_and(|output| output.value == "units");
        if has_units && !self.has("unit") {
            let help = "add [unit] with key = \"invoice:{id}\"";
            self.problem("output", "units need a key", "[unit] is missing", help);
        }
        for key in ["unit", "watermark", "cursor"] {
            if self.has(key) && !has_units {
                let message = format!("`{key}` is about units, and this job has none");
                self.problem(
                    key,
                    message,
                    "no units",
                    "add output = \"units\": each line of the output is one",
                );
            }
        }
        if self.has("query") && !self.has("publish") {
            let help = "add [publish] with a table and a mode";
            self.problem("query", "`query` goes nowhere", "[publish] is missing", help);
        }
        if self.has("publish") && !self.has("query") && !has_units {
            let help = "add query = \"select …\", or output = \"units\"";
            self.problem("publish", "there is nothing to publish", "no `query` and no units", help);
        }
    }

    fn publish(
        &mut self,
        publish: &Entries<'_>,
        names: Names,
        timetable: Option<&Timetable>,
    ) -> Option<(String, String, Text)> {
        let database = match publish.text("database") {
            Some(database) => self.known_database(&database),
            None => self.database.clone(),
        };
        if let Some(text) = publish.text("owns")
            && let Some(sql) = self.expression("owns", &text, database.as_deref(), names)
        {
            self.owns(&text, &sql.names(), timetable);
        }
        for text in texts(publish, "check") {
            self.expression("check", &text, database.as_deref(), names);
        }
        let (table, mode) = (publish.text("table")?, publish.text("mode")?);
        self.needed_by(publish, &mode);
        (mode.value == "overwrite").then_some((database?, table.value.to_lowercase(), table))
    }

    fn expression(&mut self, key: &str, text: &Text, database: Option<&str>, names: Names) -> Option<Sql> {
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

    fn needed_by(&mut self, publish: &Entries<'_>, mode: &Text) {
        let needed: &[(&str, &str)] = match mode.value.as_str() {
            "overwrite" => &[("owns", "add owns = \"order_date = :ds\": the rows that this window owns")],
            "merge" => &[("key", "add key = [\"id\"]: the columns that tell one row from another")],
            "apply-delta" => &[
                ("key", "add key = [\"sku\"]: the columns that tell one row from another"),
                ("columns", "add columns = [\"qty\"]: the columns that the difference is applied to"),
            ],
            _ => &[],
        };
        for (key, help) in needed.iter().filter(|(key, _)| !publish.has(key)) {
            let message = format!("`{}` needs `{key}`", mode.value);
            self.problems.push(mode.wrong(message, format!("`{key}` is missing")).help(*help));
        }
    }

    /// Whether what a window owns is its own.
    fn owns(&mut self, text: &Text, bound: &[&str], timetable: Option<&Timetable>) {
        let binds = |name: &str| bound.contains(&name);
        let binds_window = binds("window_start") || binds("window_end");
        let message = "`owns` does not tell one window from another";
        if let Some(timetable) = timetable {
            if !binds_window && !binds("ds") {
                let problem = text.wrong(message, "binds nothing of the window");
                self.problems.push(problem.help("bind the window, as in \"order_date = :ds\""));
            } else if !binds_window && !one_window_a_date(timetable) {
                let problem = text.wrong(message, "several windows of one date own the same rows");
                let help = "bind its start and its end, as in \"at >= :window_start and at < :window_end\"";
                self.problems.push(problem.help(help));
            }
        }
        if self.has("scopes") && !binds("scope") {
            let problem = text.wrong("`owns` does not tell one scope from another", "binds no scope");
            self.problems
                .push(problem.help(format!("add the scope, as in \"{} and org_id = :scope\"", text.value)));
        }
    }
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
