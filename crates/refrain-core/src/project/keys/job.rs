//! The keys of a job file, in the order of work: when, what, which units, where it goes, then what.

use super::then::{CURSOR, DIGEST, EFFECT, PUBLISH, STEP, UNIT, WATERMARK};
use super::{KeyKind, TEMPLATES, Table, VERSION_MAX, key, of};
use crate::WhileRunning;
use crate::project::Interrupted;
use crate::project::text_form::TextForm;
use crate::schedule::{Fold, Gap};

/// `jobs/NAME.toml`.
pub(crate) static JOB: Table = Table {
    name: "job-file",
    doc: "A job: when it runs, what it does, where the result goes.",
    keys: &[
        key("schedule", KeyKind::Text(TextForm::Schedule), r#""0 2 * * *""#, "When it ticks: a cron pattern, @daily, every 15m."),
        key("queue", KeyKind::Flag, "true", "Its runs are enqueued with a key, once per key.").default("false"),
        key("timezone", KeyKind::Text(TextForm::Zone), r#""Europe/Berlin""#, "The time zone of its schedule and windows.")
            .default(r#""UTC""#),
        key("window", KeyKind::Text(TextForm::Grid), r#""day""#, "The length of its windows: hour, day, week, month, 15m, tick.")
            .default(r#""tick""#),
        key("start", KeyKind::Moment, "2026-06-01", "The first window that must exist."),
        key(
            "catch-up",
            KeyKind::OneOf(&[KeyKind::Word(catch_up), KeyKind::Table(&WITHIN)]),
            r#""all""#,
            "Which missed windows run; required with `start`.",
        )
        .default(r#""latest""#),
        key(
            "while-running",
            KeyKind::Word(of::<WhileRunning>),
            r#""queue""#,
            "What happens to a window while an earlier one still runs.",
        )
        .default(r#""queue""#),
        key(
            "dst",
            KeyKind::Table(&DST),
            r#"{ gap = "next", fold = "first" }"#,
            "Whether local times that the clock skips or repeats tick.",
        ),
        key("after", KeyKind::List(&KeyKind::Text(TextForm::JobName)), r#"["import"]"#, "Jobs whose window must be done first.")
            .not_yet("give it a later `schedule`"),
        key("spread", KeyKind::Text(TextForm::Length), r#""10m""#, "The time over which the ticks of jobs are spread.")
            .not_yet("write another minute into `schedule`"),
        key("grace", KeyKind::Text(TextForm::Length), r#""45m""#, "How long after its tick a window that is not done counts as late."),
        key("scopes", KeyKind::Text(TextForm::Sql), r#""select id from orgs""#, "One run per window and row of this query."),
        key("version", KeyKind::Number(1, VERSION_MAX), "2", "Increase it when the logic changes: finished windows become outdated.")
            .default("1"),
        key(
            "retry",
            KeyKind::Table(&RETRY),
            r#"{ attempts = 5, backoff = "30s..1h" }"#,
            "How many attempts there are, and how long to wait between them.",
        ),
        key("timeout", KeyKind::Text(TextForm::PositiveLength), r#""30m""#, "How long an attempt may take.").default(r#""1h""#),
        key("concurrency", KeyKind::Number(1, u32::MAX), "4", "How many of its runs may be running at once, on all machines."),
        key("interrupted", KeyKind::Word(of::<Interrupted>), r#""hold""#, "What happens to a run that a crash interrupted.")
            .default(r#""again""#),
        key(
            "formerly",
            KeyKind::OneOf(&[KeyKind::Text(TextForm::JobName), KeyKind::List(&KeyKind::Text(TextForm::JobName))]),
            r#""old-name""#,
            "Its former name: the windows of that job become its own.",
        ),
        key("database", KeyKind::Text(TextForm::Plain), r#""shop""#, "The name in refrain.toml of the database for its statements."),
        key("command", TEMPLATES, r#"["./export.sh", "--date", "{ds}"]"#, "A program and its arguments; no shell."),
        key(
            "env",
            KeyKind::List(&KeyKind::Text(TextForm::Variable)),
            r#"["API_TOKEN"]"#,
            "Environment variables that are passed on to its command.",
        ),
        key("output", KeyKind::Word(output), r#""log""#, "The meaning of the output of its command.")
            .default(r#""log""#),
        key(
            "sql",
            KeyKind::Text(TextForm::Sql),
            r#""delete from totals where d = :ds; insert into totals select :ds, count(*) from orders""#,
            "Statements, in one transaction; or the name of a .sql file next to this one.",
        ),
        key("query", KeyKind::Text(TextForm::Sql), r#""select :ds as d, sum(amount) from orders""#, "The query whose result is published."),
        key(
            "http",
            KeyKind::Table(&super::then::HTTP_CALL),
            r#"{ method = "POST", url = "https://example.org/hook" }"#,
            "An HTTP call, made once per run.",
        )
        .not_yet(r#"call it from `command`, as in command = ["curl", "--fail", "https://…"]"#),
        key("unit", KeyKind::Table(&UNIT), r#"{ key = "invoice:{id}" }"#, "The smallest piece of work."),
        key("watermark", KeyKind::Table(&WATERMARK), r#"{ field = "updated_at", overlap = "10m" }"#, "Progress by timestamp."),
        key("cursor", KeyKind::Table(&CURSOR), r#"{ name = "billing" }"#, "Progress by a token of the source."),
        key(
            "publish",
            KeyKind::Table(&PUBLISH),
            r#"{ table = "totals", mode = "overwrite", owns = "d = :ds" }"#,
            "Where the result goes; it becomes visible all at once.",
        ),
        key(
            "step",
            KeyKind::Tables(&STEP),
            r#"[{ query = "select :ds as d", publish = { table = "t", mode = "overwrite", owns = "d = :ds" } }]"#,
            "Several results that commit together.",
        ),
        key("digest", KeyKind::Table(&DIGEST), r#"{ leaves = "select id, body from events" }"#, "A digest of the window's rows.")
            .not_yet("leave it out"),
        key(
            "effect",
            KeyKind::Tables(&EFFECT),
            r#"[{ name = "tell", key = "mail:{ds}", command = ["./mail.sh", "{ds}"] }]"#,
            "An action outside the database, done once.",
        )
        .not_yet("call it from `command` and pass on $REFRAIN_IDEMPOTENCY_KEY, which stays the same in every attempt"),
    ],
};

static WITHIN: Table = Table {
    name: "within",
    doc: "Only windows that were missed within this time.",
    keys: &[
        key("within", KeyKind::Text(TextForm::Length), r#""3d""#, "The maximum age of its tick.").required()
    ],
};

static DST: Table = Table {
    name: "dst",
    doc: "Whether local times that the clock skips or repeats tick.",
    keys: &[
        key("gap", KeyKind::Word(of::<Gap>), r#""skip""#, "When the clock goes forward.")
            .default(r#""next""#),
        key("fold", KeyKind::Word(of::<Fold>), r#""both""#, "When the clock goes back.")
            .default(r#""first""#),
    ],
};

static RETRY: Table = Table {
    name: "retry",
    doc: "How many attempts there are, and how long to wait between them.",
    keys: &[
        key("attempts", KeyKind::Number(1, u32::MAX), "5", "The total number of attempts.").default("3"),
        key(
            "backoff",
            KeyKind::Text(TextForm::Backoff),
            r#""30s..1h""#,
            "The first wait and the longest one.",
        )
        .default(r#""30s..1h""#),
    ],
};

fn catch_up() -> Vec<(&'static str, &'static str)> {
    vec![
        ("all", "All of them run, oldest first."),
        ("latest", "Only the latest window runs."),
        ("none", "None of them runs."),
    ]
}

fn output() -> Vec<(&'static str, &'static str)> {
    vec![("log", "Its output is kept as a log."), ("units", "Each line is a unit, as a JSON object.")]
}
