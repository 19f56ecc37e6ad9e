//! The tables below a job: which units, where they go, then what.

use super::{Kind, PARALLEL_MAX, TEMPLATES, TEXTS, Table, VERSION_MAX, key, of};
use crate::Per;
use crate::call::Method;
use crate::project::form::Form;
use crate::publish::{FileFormat, Mode};
use crate::state::OnChange;

/// One piece of work.
pub(crate) static UNIT: Table = Table {
    name: "unit",
    doc: "The smallest piece of work with a stable key.",
    keys: &[
        key(
            "key",
            Kind::Text(Form::KeyTemplate),
            r#""invoice:{id}""#,
            "The template of the key that identifies a unit.",
        )
        .required(),
        key(
            "order",
            Kind::Text(Form::Plain),
            r#""updated_at""#,
            "The field that orders contents of a unit, from older to newer.",
        ),
        key(
            "on-change",
            Kind::Word(of::<OnChange>),
            r#""update""#,
            "What to do when a known unit has other content; the default with append-once is \"reject\".",
        ),
        key("fields", TEXTS, r#"["id", "amount"]"#, "The fields that make up its content."),
        key(
            "per",
            Kind::Word(of::<Per>),
            r#""ever""#,
            "Whether its key is unique forever, or within its window.",
        ),
        key("command", TEMPLATES, r#"["./apply.sh", "{id}"]"#, "A program to run for each unit."),
        key(
            "http",
            Kind::Table(&HTTP_CALL),
            r#"{ url = "https://example.org/{id}" }"#,
            "An HTTP call to make for each unit.",
        ),
        key(
            "parallel",
            Kind::Number(1, PARALLEL_MAX),
            "8",
            "How many units that program or call applies at once.",
        )
        .default("4"),
        key(
            "in-doubt",
            Kind::Word(in_doubt_of_a_unit),
            r#""hold""#,
            "What to do when it is unknown whether a call arrived.",
        )
        .default(r#""hold""#),
        key(
            "provider-ttl",
            Kind::Text(Form::PositiveLength),
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
            Kind::Text(Form::Plain),
            r#""updated_at""#,
            "The field of a unit that holds its timestamp.",
        )
        .required(),
        key("overlap", Kind::Text(Form::Length), r#""10m""#, "How far to re-read."),
    ],
};

/// Progress by a token.
pub(crate) static CURSOR: Table = Table {
    name: "cursor",
    doc: "Progress by a token of the source.",
    keys: &[
        key("name", Kind::Text(Form::Plain), r#""billing""#, "The name of the cursor."),
        key(
            "per",
            Kind::Word(of::<Per>),
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
        key("database", Kind::Text(Form::Plain), r#""shop""#, "The database, by its name in refrain.toml."),
        key("table", Kind::Text(Form::Plain), r#""revenue_daily""#, "The table; or `path`."),
        key("mode", Kind::Word(of::<Mode>), r#""overwrite""#, "How existing rows are replaced."),
        key("owns", Kind::Text(Form::Sql), r#""order_date = :ds""#, "The rows that this window owns."),
        key("key", TEXTS, r#"["source_system", "id"]"#, "The columns that identify a row."),
        key("columns", TEXTS, r#"["qty"]"#, "The columns that the difference is applied to."),
        key(
            "surrogate",
            Kind::Map(&TEXTS),
            r#"{ revenue_sk = ["order_date", "region"] }"#,
            "Ids derived from columns.",
        ),
        key(
            "check",
            Kind::List(&Kind::Text(Form::Sql)),
            r#"["count(*) > 0"]"#,
            "Conditions that the staged rows must meet.",
        ),
        key(
            "stamp",
            Kind::Text(Form::Plain),
            r#""computed_version""#,
            "The column that gets the job's version.",
        ),
        key(
            "delete-missing",
            Kind::Flag,
            "true",
            "Whether rows that the window owns and the result lacks are deleted; with merge.",
        )
        .default("false"),
        key("insert-missing", Kind::Flag, "true", "Whether a difference may insert a row; with apply-delta.")
            .default("false"),
        key("per", Kind::Word(of::<Per>), r#""ever""#, "How long an appended row is remembered."),
        key(
            "on-change",
            Kind::Word(of::<OnChange>),
            r#""first""#,
            "What to do when the key of an appended row comes with other content; with append-once.",
        ),
        key(
            "ledger",
            Kind::Flag,
            "false",
            "Whether each unit has an entry in the ledger, or only each page.",
        )
        .default("true"),
        key(
            "view",
            Kind::Text(Form::Plain),
            r#""events""#,
            "A view that shows each content once, even if it came in several windows; with land.",
        ),
        key(
            "path",
            Kind::Text(Form::Argument),
            r#""out/dt={ds}/""#,
            "The directory of its files; or `table`.",
        ),
        key("format", Kind::Word(of::<FileFormat>), r#""csv""#, "The file format.").default(r#""csv""#),
    ],
};

/// One of several results.
pub(crate) static STEP: Table = Table {
    name: "step",
    doc: "One of several results that commit together.",
    keys: &[
        key("query", Kind::Text(Form::Sql), r#""select :ds as d""#, "The query whose result is published.")
            .required(),
        key(
            "publish",
            Kind::Table(&PUBLISH),
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
        Kind::Text(Form::Sql),
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
        key("name", Kind::Text(Form::JobName), r#""tell-warehouse""#, "The name of the effect.").required(),
        key(
            "when",
            Kind::Word(when),
            r#""inserted""#,
            "The outcome of the unit or the run that triggers it.",
        ),
        key(
            "for-each",
            Kind::Text(Form::Sql),
            r#""select id as hook, url from webhooks""#,
            "One effect per row of this query.",
        ),
        key(
            "key",
            Kind::Text(Form::KeyTemplate),
            r#""notify:new-invoice:{id}""#,
            "The fact that causes it, never the run.",
        )
        .required(),
        key(
            "version",
            Kind::Number(1, VERSION_MAX),
            "2",
            "Increase it to repeat the effect for known facts.",
        )
        .default("1"),
        key(
            "http",
            Kind::Table(&HTTP_CALL),
            r#"{ method = "POST", url = "https://example.org/mail" }"#,
            "A call.",
        ),
        key(
            "webhook",
            Kind::Table(&WEBHOOK),
            r#"{ url = "https://example.org/hook", type = "digest.created" }"#,
            "A signed call.",
        ),
        key("command", TEMPLATES, r#"["./mail.sh", "{ds}"]"#, "A program."),
        key(
            "in-doubt",
            Kind::Word(in_doubt),
            r#""hold""#,
            "What to do when it is unknown whether it happened.",
        ),
        key(
            "provider-ttl",
            Kind::Text(Form::PositiveLength),
            r#""24h""#,
            "How long the receiver remembers a key.",
        ),
        key(
            "first-run-limit",
            Kind::Number(0, u32::MAX),
            "100",
            "If the first run has more than this, it waits for an operator.",
        ),
        key("keep", Kind::Text(Form::PositiveLength), r#""400d""#, "How long its full record is kept."),
    ],
};

/// A call.
pub(crate) static HTTP_CALL: Table = Table {
    name: "http",
    doc: "An HTTP call.",
    keys: &[
        key("method", Kind::Word(of::<Method>), r#""POST""#, "The HTTP method.").default(r#""POST""#),
        key(
            "url",
            Kind::Text(Form::Link),
            r#""https://example.org/mail""#,
            "The URL to call; ${ENV} is expanded.",
        )
        .required(),
        key(
            "headers",
            Kind::Map(&Kind::Text(Form::Header)),
            r#"{ Accept = "application/json" }"#,
            "The headers; ${ENV} is expanded.",
        ),
        key("json", Kind::Json, r#"{ text = "Revenue for {ds} is in" }"#, "The body."),
        key("timeout", Kind::Text(Form::PositiveLength), r#""10s""#, "How long to wait for a response.")
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
            Kind::Text(Form::Link),
            r#""https://example.org/hook""#,
            "The URL to call; ${ENV} is expanded.",
        )
        .required(),
        key(
            "secret",
            Kind::Text(Form::Header),
            r#""{secret}""#,
            "The secret that signs it; ${ENV} is expanded.",
        ),
        key("type", Kind::Text(Form::Plain), r#""digest.created""#, "The event type that the receiver sees.")
            .required(),
        key("json", Kind::Json, r#"{ window = "{window_start}" }"#, "The body."),
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
