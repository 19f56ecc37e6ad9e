//! The keys of `refrain.toml`.

use super::then::WEBHOOK;
use super::{Key, Kind, TEMPLATES, TEXTS, Table, key, of};
use crate::project::TimeForm;
use crate::project::form::Form;

/// `refrain.toml`.
pub(crate) static PROJECT: Table = Table {
    name: "project-file",
    doc: "The project: its name, where its runs are kept, and the databases that its jobs read and write.",
    keys: &[
        key("project", Kind::Table(&PROJECT_TABLE), r#"{ name = "shop" }"#, "The project itself.").required(),
        key(
            "store",
            Kind::Table(&STORE),
            r#"{ url = "sqlite:.refrain/refrain.db" }"#,
            "Where runs are kept.",
        ),
        key(
            "databases",
            Kind::Map(&Kind::OneOf(&[Kind::Text(Form::Address), Kind::Table(&DATABASE)])),
            r#"{ shop = "sqlite:shop.db" }"#,
            "What jobs read and write, by names of your own.",
        ),
        key("http", Kind::Table(&HTTP), r#"{ allow-private = ["hooks.internal"] }"#, "Rules for calls."),
        key(
            "alert",
            Kind::Table(&ALERT),
            r#"{ command = ["./alert.sh"] }"#,
            "Whom to tell of failed, late and in-doubt work, and of a spike of dedupes.",
        )
        .not_yet("ask `refrain status --json` from your monitoring"),
    ],
};

static PROJECT_TABLE: Table = Table {
    name: "project",
    doc: "The project itself.",
    keys: &[key(
        "name",
        Kind::Text(Form::ProjectName),
        r#""shop""#,
        "The project's name. It is part of every ledger key, so it is for ever.",
    )
    .required()],
};

static STORE: Table = Table {
    name: "store",
    doc: "Where runs are kept.",
    keys: &[key(
        "url",
        Kind::Text(Form::Address),
        r#""postgres://refrain@db/refrain""#,
        "A file of SQLite, or PostgreSQL for many machines; ${ENV} is expanded.",
    )
    .default(r#""sqlite:.refrain/refrain.db""#)],
};

const TIME: Key = key(
    "time",
    Kind::Word(of::<TimeForm>),
    r#""iso""#,
    "How SQLite holds moments in this database; values are bound in the same form.",
)
.default(r#""text""#);

static DATABASE: Table = Table {
    name: "database",
    doc: "A database that jobs read and write.",
    keys: &[
        key("url", Kind::Text(Form::Address), r#""sqlite:shop.db""#, "Where it is; ${ENV} is expanded.")
            .required(),
        TIME,
    ],
};

static HTTP: Table = Table {
    name: "http-rules",
    doc: "Rules for calls to other machines.",
    keys: &[key(
        "allow-private",
        TEXTS,
        r#"["hooks.internal"]"#,
        "Hosts that may be private although their names come from data.",
    )],
};

static ALERT: Table = Table {
    name: "alert",
    doc: "Whom to tell of failed, late and in-doubt work, and of a spike of dedupes.",
    keys: &[
        key("command", TEMPLATES, r#"["./alert.sh"]"#, "A program that is told on its standard input."),
        key(
            "webhook",
            Kind::Table(&WEBHOOK),
            r#"{ url = "${ALERT_URL}", type = "refrain.alert" }"#,
            "An address that is told.",
        ),
    ],
};
