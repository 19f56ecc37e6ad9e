//! Units: the output lines of a command, or the rows of a query, each with a key of its own.

use super::effect::texts_below;
use super::{JobReader, number, texts};
use crate::feed::{Apply, Feed, FeedCursor, FeedSource, FeedWatermark};
use crate::project::document::{Entries, Value};
use crate::project::environment;
use crate::project::names::Names;
use crate::project::problem::Problem;
use crate::publish::{Mode, Publish, TablePublish};
use crate::state::{InDoubtPolicy, OnChange};
use crate::values::PAYLOAD;
use crate::{KeyTemplate, Per, Template, duration};

/// The default name of a cursor.
const CURSOR: &str = "cursor";
/// The default number of units that are processed in parallel.
const PARALLEL: u32 = 4;

impl JobReader<'_> {
    /// Whether this job processes units.
    pub(super) fn is_feed(&self) -> bool {
        self.prints_units() || (self.has("query") && self.has("unit"))
    }

    pub(super) fn prints_units(&self) -> bool {
        self.text("output").is_some_and(|output| output.value == "units")
    }

    /// The default of how long a key is remembered.
    pub(super) fn usual_per(&self) -> Per {
        let is_for_ever = self.has("watermark") || self.has("cursor") || self.flag("queue");
        if is_for_ever { Per::Ever } else { Per::Window }
    }

    /// Checks that units, queries and results fit together.
    pub(super) fn belongs_together(&mut self) {
        if self.prints_units() && !self.has("unit") {
            let help = "add [unit] with key = \"invoice:{id}\"";
            self.problem("output", "units need a key", "[unit] is missing", help);
        }
        for key in ["unit", "watermark", "cursor"] {
            if self.has(key) && !self.is_feed() {
                let message = format!("`{key}` needs units, and this job has none");
                let help = "add output = \"units\": each line of the output is one unit";
                self.problem(key, message, "no units", help);
            }
        }
        if self.has("watermark") && self.has("cursor") {
            let message = "[watermark] and [cursor] cannot both be set";
            self.problem("cursor", message, "the second", "leave one of them out");
        }
        self.of_progress();
        let applies = self.table("unit").is_some_and(|unit| unit.has("command") || unit.has("http"));
        if self.has("query") && !self.has("publish") && !applies {
            let help = "add [publish] with a table and a mode";
            self.problem("query", "the result of `query` is not used", "[publish] is missing", help);
        }
        if self.prints_units() && !self.has("publish") && !applies {
            let help =
                "add [publish] with a table and a mode, or command = [\"./apply.sh\", \"{id}\"] to [unit]";
            self.problem("output", "the units are not used", "[publish] is missing", help);
        }
        if self.has("publish") && applies {
            let message = "[publish] cannot be combined with `command` or `http` in [unit]";
            self.problem("publish", message, "[unit] has an action already", "leave one of them out");
        }
        let publishes_files = self.table("publish").is_some_and(|publish| publish.has("path"));
        let has_rows = self.has("query") || self.is_feed() || (self.has("command") && publishes_files);
        if self.has("publish") && !has_rows {
            let help = "add query = \"select …\", or output = \"units\"";
            self.problem("publish", "[publish] has no rows to publish", "no `query` and no units", help);
        }
        self.one_way();
        self.only_with_entries();
        if self.is_feed() && publishes_files {
            let help = "name a table, or leave [unit] out and write the rows of a query into files";
            self.problem("publish", "units can be published only into a table", "into files", help);
        }
    }

    /// Checks the names of checkpoints, which are the same in every run; `per` is what makes them differ between runs.
    fn of_progress(&mut self) {
        for (table, key, help) in [
            (
                "cursor",
                "name",
                "write a plain name; if each window starts from the beginning, add per = \"window\"",
            ),
            ("watermark", "field", "write the name of a field of the unit"),
        ] {
            let text = self.table(table).and_then(|table| table.text(key));
            let Some((text, from)) = text.and_then(|text| text.value.find(['{', '}']).map(|at| (text, at)))
            else {
                continue;
            };
            let message = format!("`{key}` of a {table} does not take placeholders");
            let problem = text.problem(from..from + 1, message, "braces are not expanded here");
            self.problems.push(problem.help(help));
        }
        let Some(cursor) = self.table("cursor").filter(|_| self.flag("queue")) else { return };
        if of_cursor(&cursor).per == Per::Window {
            let message = "a queued run has no window, so its cursor cannot be `per` window";
            let problem = Problem::new(cursor.path(), cursor.key_span("per"), message, "no windows here");
            self.problems.push(problem.help("leave it out, or write `schedule` instead of queue = true"));
        }
    }

    /// Checks that one thing is done with a unit, and that only calls can be in doubt.
    fn one_way(&mut self) {
        let Some(unit) = self.table("unit") else { return };
        let mut problem = |key: &str, message: &str, label: &str, help: &str| {
            let problem = Problem::new(unit.path(), unit.key_span(key), message, label);
            self.problems.push(problem.help(help));
        };
        if unit.has("command") && unit.has("http") {
            let message = "[unit] cannot have both `command` and `http`";
            problem("http", message, "the second", "leave one of them out");
        }
        if unit.has("in-doubt") && !unit.has("http") {
            problem("in-doubt", "`in-doubt` needs `http`", "no `http`", "leave it out");
        }
        if unit.has("parallel") && !unit.has("http") && !unit.has("command") {
            let message = "`parallel` needs a `command` or `http` in [unit]";
            problem("parallel", message, "no action for each unit", "leave it out");
        }
    }

    /// Checks that a repeated request is identical; a unit that is remembered for ever may be sent again by another run.
    fn repeated_request_is_identical(&mut self, http: &Entries<'_>, per: Per) {
        let changes = |name: &str| match name.split('.').next().unwrap_or(name) {
            "cursor" | "watermark" => Some("attempt"),
            "ds" | "window_start" | "window_end" | PAYLOAD if per == Per::Ever => Some("run"),
            _ => None,
        };
        for text in http.iter().flat_map(|(.., value)| texts_below(value)) {
            let Ok(template) = Template::parse(&environment::masked(&text.value)) else { continue };
            for (name, span) in template.places() {
                let Some(next) = changes(name) else { continue };
                let message =
                    format!("`{{{name}}}` changes in the next {next}, which may repeat this request");
                let problem = text.problem(span, message, "a repeated request must be identical");
                let help = match next {
                    "run" => "take a field of the unit, or write per = \"window\" in [unit]",
                    _ => "leave it out, or take a field of the unit",
                };
                self.problems.push(problem.help(help));
            }
        }
    }

    /// Checks that keys which depend on the entry of each unit are used only with a ledger.
    fn only_with_entries(&mut self) {
        let Some(unit) = self.table("unit") else { return };
        let ledger = self.table("publish").and_then(|publish| publish.get("ledger").and_then(Value::flag));
        for key in ["order", "on-change"] {
            if ledger == Some(false) && unit.has(key) {
                let message = format!(
                    "`{key}` compares a unit with its ledger entry, which `ledger = false` does not keep"
                );
                let problem = Problem::new(unit.path(), unit.key_span(key), message, "has no effect here");
                self.problems.push(problem.help("leave it out, or leave `ledger = false` out"));
            }
        }
    }

    /// The units of this job, if it has any.
    pub(super) fn feed(
        &mut self,
        source: Option<FeedSource>,
        names: Names,
        publish: Option<Publish>,
    ) -> Option<Feed> {
        let unit = self.table("unit")?;
        let key = KeyTemplate::parse(&unit.text("key")?.value).ok()?;
        let fields: Vec<String> = texts(&unit, "fields").into_iter().map(|text| text.value).collect();
        let watermark = self.table("watermark").and_then(|watermark| of_watermark(&watermark));
        let cursor = self.table("cursor");
        let per = unit.text("per").and_then(|per| per.value.parse().ok()).unwrap_or(self.usual_per());
        let apply = self.apply(&unit, names, publish, per)?;
        let (mode, default) = match &apply {
            Apply::Publish(publish) if publish.mode == Mode::AppendOnce => {
                (Mode::AppendOnce, OnChange::Reject)
            }
            _ => (Mode::Merge, OnChange::Update),
        };
        let on_change = self.on_change_of(&unit, mode, default);
        Some(Feed {
            source: source?,
            key,
            order: unit.text("order").map(|text| text.value),
            on_change,
            fields: unit.has("fields").then_some(fields),
            per,
            watermark,
            cursor: cursor.map(|cursor| of_cursor(&cursor)),
            apply,
        })
    }

    fn apply(
        &mut self,
        unit: &Entries<'_>,
        names: Names,
        publish: Option<Publish>,
        per: Per,
    ) -> Option<Apply> {
        let parallel = number(unit, "parallel").unwrap_or(PARALLEL);
        if let Some(http) = unit.get("http").and_then(Value::table) {
            self.repeated_request_is_identical(&http, per);
            let in_doubt = unit.text("in-doubt").and_then(|policy| policy.value.parse().ok());
            let provider_ttl = unit.text("provider-ttl").and_then(|ttl| duration::parse(&ttl.value).ok());
            return Some(Apply::Http {
                call: Box::new(self.call_of(&http)?),
                parallel,
                in_doubt: in_doubt.unwrap_or(InDoubtPolicy::Hold),
                provider_ttl,
            });
        }
        let elements = texts(unit, "command");
        if elements.is_empty() {
            return publish.and_then(into_table).map(Apply::Publish);
        }
        let with_fields = Names { fields: true, ..names };
        Some(Apply::Command { argv: self.argv(&elements, with_fields)?, parallel })
    }
}

fn into_table(publish: Publish) -> Option<Box<TablePublish>> {
    match publish {
        Publish::Table(publish) => Some(publish),
        Publish::Files(_) => None,
    }
}

fn of_cursor(cursor: &Entries<'_>) -> FeedCursor {
    FeedCursor {
        name: cursor.text("name").map_or(CURSOR.to_owned(), |name| name.value),
        per: cursor.text("per").and_then(|per| per.value.parse().ok()).unwrap_or(Per::Ever),
    }
}

fn of_watermark(watermark: &Entries<'_>) -> Option<FeedWatermark> {
    let overlap = watermark.get("overlap").and_then(Value::text);
    let overlap = overlap.and_then(|text| duration::parse(&text.value).ok()).unwrap_or_default();
    Some(FeedWatermark { field: watermark.text("field")?.value, overlap })
}
