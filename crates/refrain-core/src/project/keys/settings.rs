//! The keys of `refrain.toml`.

use super::then::WEBHOOK;
use super::{FileKey, KeyKind, TEMPLATES, TEXTS, Table, key, of};
use crate::project::TimeForm;
use crate::project::text_form::TextForm;

/// `refrain.toml`.
pub(crate) static PROJECT: Table = Table {
    name: "project-file",
    doc: "The project: its name, where its runs are kept, and the databases that its jobs read and write.",
    keys: &[
        key("project", KeyKind::Table(&PROJECT_TABLE), r#"{ name = "shop" }"#, "The project itself.")
            .required(),
        key(
            "store",
            KeyKind::Table(&STORE),
            r#"{ url = "sqlite:.refrain/refrain.db" }"#,
            "Where runs are kept.",
        ),
        key(
            "databases",
            KeyKind::Map(&KeyKind::OneOf(&[KeyKind::Text(TextForm::Address), KeyKind::Table(&DATABASE)])),
            r#"{ shop = "sqlite:shop.db" }"#,
            "The databases that jobs read and write, each with a name that you choose.",
        ),
        key(
            "http",
            KeyKind::Table(&HTTP),
            r#"{ allow-private = ["hooks.internal"] }"#,
            "Rules for HTTP calls.",
        ),
        key(
            "alert",
            KeyKind::Table(&ALERT),
            r#"{ command = ["./alert.sh"] }"#,
            "Where to report failed, late and in-doubt work, and spikes of dedupes.",
        )
        .not_yet("ask `refrain status --json` from your monitoring"),
    ],
};

static PROJECT_TABLE: Table = Table {
    name: "project",
    doc: "The project itself.",
    keys: &[key(
        "name",
        KeyKind::Text(TextForm::ProjectName),
        r#""shop""#,
        "The project's name. It is part of every ledger key, so it must never change.",
    )
    .required()],
};

static STORE: Table = Table {
    name: "store",
    doc: "Where runs are kept.",
    keys: &[key(
        "url",
        KeyKind::Text(TextForm::Address),
        r#""postgres://refrain@db/refrain""#,
        "The URL of a SQLite file, or of PostgreSQL for several machines; ${ENV} is expanded.",
    )
    .default(r#""sqlite:.refrain/refrain.db""#)],
};

const TIME: FileKey = key(
    "time",
    KeyKind::Word(of::<TimeForm>),
    r#""iso""#,
    "How SQLite stores timestamps in this database; values are bound in the same form.",
)
.default(r#""text""#);

static DATABASE: Table = Table {
    name: "database",
    doc: "A database that jobs read and write.",
    keys: &[
        key("url", KeyKind::Text(TextForm::Address), r#""sqlite:shop.db""#, "Its URL; ${ENV} is expanded.")
            .required(),
        TIME,
    ],
};

static HTTP: Table = Table {
    name: "http-rules",
    doc: "Rules for HTTP calls.",
    keys: &[key(
        "allow-private",
        TEXTS,
        r#"["hooks.internal"]"#,
        "Hosts that may be private even if their names come from data.",
    )],
};

static ALERT: Table = Table {
    name: "alert",
    doc: "Where to report failed, late and in-doubt work, and spikes of dedupes.",
    keys: &[
        key(
            "command",
            TEMPLATES,
            r#"["./alert.sh"]"#,
            "A program that receives the report on its standard input.",
        ),
        key(
            "webhook",
            KeyKind::Table(&WEBHOOK),
            r#"{ url = "${ALERT_URL}", type = "refrain.alert" }"#,
            "A URL that receives the report.",
        ),
    ],
};
