//! The tables below a job: which units, where they go, then what.

use super::{KeyKind, PARALLEL_MAX, TEMPLATES, TEXTS, Table, VERSION_MAX, key, of};
use crate::Per;
use crate::call::Method;
use crate::project::text_form::TextForm;
use crate::publish::{FileFormat, Mode};
use crate::state::OnChange;

/// One piece of work.
pub(crate) static UNIT: Table = Table {
    name: "unit",
    doc: "The smallest piece of work with a stable key.",
    keys: &[
        key(
            "key",
            KeyKind::Text(TextForm::KeyTemplate),
            r#""invoice:{id}""#,
            "The template of the key that identifies a unit.",
        )
        .required(),
        key(
            "order",
            KeyKind::Text(TextForm::Plain),
            r#""updated_at""#,
            "The field that orders contents of a unit, from older to newer.",
        ),
        key(
            "on-change",
            KeyKind::Word(of::<OnChange>),
            r#""update""#,
            "What to do when a known unit has other content; the default with append-once is \"reject\".",
        ),
        key("fields", TEXTS, r#"["id", "amount"]"#, "The fields that make up its content."),
        key(
            "per",
            KeyKind::Word(of::<Per>),
            r#""ever""#,
            "Whether its key is unique forever, or within its window.",
        ),
        key("command", TEMPLATES, r#"["./apply.sh", "{id}"]"#, "A program to run for each unit."),
        key(
            "http",
            KeyKind::Table(&HTTP_CALL),
            r#"{ url = "https://example.org/{id}" }"#,
            "An HTTP call to make for each unit.",
        ),
        key(
            "parallel",
            KeyKind::Number(1, PARALLEL_MAX),
            "8",
            "How many units that program or call applies at once.",
        )
        .default("4"),
        key(
            "in-doubt",
            KeyKind::Word(in_doubt_of_a_unit),
            r#""hold""#,
            "What to do when it is unknown whether a call arrived.",
        )
        .default(r#""hold""#),
        key(
            "provider-ttl",
            KeyKind::Text(TextForm::PositiveLength),
            r#""24h""#,
            "How long the receiver remembers a key.",
        ),
    ],
};

/// Progress by time.
pub(crate) static WATERMARK: Table = Table {
    name: "watermark",
    doc: "Progress by timestamp, re-read with an overlap.",
    keys: &[
        key(
            "field",
            KeyKind::Text(TextForm::Plain),
            r#""updated_at""#,
            "The field of a unit that holds its timestamp.",
        )
        .required(),
        key("overlap", KeyKind::Text(TextForm::Length), r#""10m""#, "How far to re-read."),
    ],
};

/// Progress by a token.
pub(crate) static CURSOR: Table = Table {
    name: "cursor",
    doc: "Progress by a token of the source.",
    keys: &[
        key("name", KeyKind::Text(TextForm::Plain), r#""billing""#, "The name of the cursor."),
        key(
            "per",
            KeyKind::Word(of::<Per>),
            r#""window""#,
            "Whether its position is kept forever, or each window starts at the beginning of the source.",
        )
        .default(r#""ever""#),
    ],
};

/// Where a result goes.
pub(crate) static PUBLISH: Table = Table {
    name: "publish",
    doc: "Where a result goes.",
    keys: &[
        key(
            "database",
            KeyKind::Text(TextForm::Plain),
            r#""shop""#,
            "The database, by its name in refrain.toml.",
        ),
        key("table", KeyKind::Text(TextForm::Plain), r#""revenue_daily""#, "The table; or `path`."),
        key("mode", KeyKind::Word(of::<Mode>), r#""overwrite""#, "How existing rows are replaced."),
        key("owns", KeyKind::Text(TextForm::Sql), r#""order_date = :ds""#, "The rows that this window owns."),
        key("key", TEXTS, r#"["source_system", "id"]"#, "The columns that identify a row."),
        key("columns", TEXTS, r#"["qty"]"#, "The columns that the difference is applied to."),
        key(
            "surrogate",
            KeyKind::Map(&TEXTS),
            r#"{ revenue_sk = ["order_date", "region"] }"#,
            "Ids derived from columns.",
        ),
        key(
            "check",
            KeyKind::List(&KeyKind::Text(TextForm::Sql)),
            r#"["count(*) > 0"]"#,
            "Conditions that the staged rows must meet.",
        ),
        key(
            "stamp",
            KeyKind::Text(TextForm::Plain),
            r#""computed_version""#,
            "The column that gets the job's version.",
        ),
        key(
            "delete-missing",
            KeyKind::Flag,
            "true",
            "Whether rows that the window owns and the result lacks are deleted; with merge.",
        )
        .default("false"),
        key(
            "insert-missing",
            KeyKind::Flag,
            "true",
            "Whether a difference may insert a row; with apply-delta.",
        )
        .default("false"),
        key("per", KeyKind::Word(of::<Per>), r#""ever""#, "How long an appended row is remembered."),
        key(
            "on-change",
            KeyKind::Word(of::<OnChange>),
            r#""first""#,
            "What to do when the key of an appended row comes with other content; with append-once.",
        ),
        key(
            "ledger",
            KeyKind::Flag,
            "false",
            "Whether each unit has an entry in the ledger, or only each page.",
        )
        .default("true"),
        key(
            "view",
            KeyKind::Text(TextForm::Plain),
            r#""events""#,
            "A view that shows each content once, even if it came in several windows; with land.",
        ),
        key(
            "path",
            KeyKind::Text(TextForm::Argument),
            r#""out/dt={ds}/""#,
            "The directory of its files; or `table`.",
        ),
        key("format", KeyKind::Word(of::<FileFormat>), r#""csv""#, "The file format.").default(r#""csv""#),
    ],
};

/// One of several results.
pub(crate) static STEP: Table = Table {
    name: "step",
    doc: "One of several results that commit together.",
    keys: &[
        key(
            "query",
            KeyKind::Text(TextForm::Sql),
            r#""select :ds as d""#,
            "The query whose result is published.",
        )
        .required(),
        key(
            "publish",
            KeyKind::Table(&PUBLISH),
            r#"{ table = "t", mode = "overwrite", owns = "d = :ds" }"#,
            "Where it goes.",
        )
        .required(),
    ],
};

/// A seal on a window's rows.
pub(crate) static DIGEST: Table = Table {
    name: "digest",
    doc: "A digest of the rows of a window.",
    keys: &[key(
        "leaves",
        KeyKind::Text(TextForm::Sql),
        r#""select id, body from events""#,
        "The rows that the digest covers.",
    )
    .required()],
};

/// Something outside of the database.
pub(crate) static EFFECT: Table = Table {
    name: "effect",
    doc: "An action outside the database: a mail, a webhook, a charge.",
    keys: &[
        key("name", KeyKind::Text(TextForm::JobName), r#""tell-warehouse""#, "The name of the effect.")
            .required(),
        key(
            "when",
            KeyKind::Word(when),
            r#""inserted""#,
            "The outcome of the unit or the run that triggers it.",
        ),
        key(
            "for-each",
            KeyKind::Text(TextForm::Sql),
            r#""select id as hook, url from webhooks""#,
            "One effect per row of this query.",
        ),
        key(
            "key",
            KeyKind::Text(TextForm::KeyTemplate),
            r#""notify:new-invoice:{id}""#,
            "The fact that causes it, never the run.",
        )
        .required(),
        key(
            "version",
            KeyKind::Number(1, VERSION_MAX),
            "2",
            "Increase it to repeat the effect for known facts.",
        )
        .default("1"),
        key(
            "http",
            KeyKind::Table(&HTTP_CALL),
            r#"{ method = "POST", url = "https://example.org/mail" }"#,
            "A call.",
        ),
        key(
            "webhook",
            KeyKind::Table(&WEBHOOK),
            r#"{ url = "https://example.org/hook", type = "digest.created" }"#,
            "A signed call.",
        ),
        key("command", TEMPLATES, r#"["./mail.sh", "{ds}"]"#, "A program."),
        key(
            "in-doubt",
            KeyKind::Word(in_doubt),
            r#""hold""#,
            "What to do when it is unknown whether it happened.",
        ),
        key(
            "provider-ttl",
            KeyKind::Text(TextForm::PositiveLength),
            r#""24h""#,
            "How long the receiver remembers a key.",
        ),
        key(
            "first-run-limit",
            KeyKind::Number(0, u32::MAX),
            "100",
            "If the first run has more than this, it waits for an operator.",
        ),
        key(
            "keep",
            KeyKind::Text(TextForm::PositiveLength),
            r#""400d""#,
            "How long its full record is kept.",
        ),
    ],
};

/// A call.
pub(crate) static HTTP_CALL: Table = Table {
    name: "http",
    doc: "An HTTP call.",
    keys: &[
        key("method", KeyKind::Word(of::<Method>), r#""POST""#, "The HTTP method.").default(r#""POST""#),
        key(
            "url",
            KeyKind::Text(TextForm::Link),
            r#""https://example.org/mail""#,
            "The URL to call; ${ENV} is expanded.",
        )
        .required(),
        key(
            "headers",
            KeyKind::Map(&KeyKind::Text(TextForm::Header)),
            r#"{ Accept = "application/json" }"#,
            "The headers; ${ENV} is expanded.",
        ),
        key("json", KeyKind::Json, r#"{ text = "Revenue for {ds} is in" }"#, "The body."),
        key(
            "timeout",
            KeyKind::Text(TextForm::PositiveLength),
            r#""10s""#,
            "How long to wait for a response.",
        )
        .default(r#""30s""#),
    ],
};

/// A signed call.
pub(crate) static WEBHOOK: Table = Table {
    name: "webhook",
    doc: "A signed call; its id is the receiver's dedupe key.",
    keys: &[
        key(
            "url",
            KeyKind::Text(TextForm::Link),
            r#""https://example.org/hook""#,
            "The URL to call; ${ENV} is expanded.",
        )
        .required(),
        key(
            "secret",
            KeyKind::Text(TextForm::Header),
            r#""{secret}""#,
            "The secret that signs it; ${ENV} is expanded.",
        ),
        key(
            "type",
            KeyKind::Text(TextForm::Plain),
            r#""digest.created""#,
            "The event type that the receiver sees.",
        )
        .required(),
        key("json", KeyKind::Json, r#"{ window = "{window_start}" }"#, "The body."),
    ],
};

fn when() -> Vec<(&'static str, &'static str)> {
    vec![
        ("inserted", "The row is new."),
        ("updated", "The row existed, with other content."),
        ("applied", "The unit was applied."),
        ("done", "The run is done."),
    ]
}

fn in_doubt() -> Vec<(&'static str, &'static str)> {
    vec![
        ("hold", "It waits for an operator."),
        ("provider-key", "The same request is sent again while the receiver remembers its key."),
        ("probe", "The receiver is asked."),
        ("at-most-once", "It is given up."),
        ("at-least-once", "It is sent again."),
    ]
}

/// Those that need no record of its own for each call.
fn in_doubt_of_a_unit() -> Vec<(&'static str, &'static str)> {
    let words = ["hold", "provider-key", "at-least-once"];
    in_doubt().into_iter().filter(|(word, _)| words.contains(word)).collect()
}
