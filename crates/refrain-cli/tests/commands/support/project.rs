//! A project whose jobs do nothing, to try a store, a schedule and the ends of a command.
//!
//! The payload makes a run last or fail: `{"until": PATH}`, `{"error": TEXT}`.

const NOOP: &str = r#"#!/bin/sh
# Lasts until there is a file, if the payload says so, and fails with a text, if the payload says so.
value() { printf %s "$REFRAIN_PAYLOAD" | sed -n 's/.*"'"$1"'": *"\([^"]*\)".*/\1/p'; }
[ -n "$REFRAIN_PAYLOAD" ] || exit 0
until=$(value until)
if [ -n "$until" ]; then
    echo "waiting for a file"
    : > "$until.awaited"
    while [ ! -e "$until" ]; do sleep 0.02; done
fi
error=$(value error | sed 's/\\u001b/\\0033/g')
[ -z "$error" ] || { printf '%b\n' "$error" >&2; exit 1; }
"#;

const QUEUED: &str = "queue = true\ncommand = [\"./noop.sh\"]\n";
const TRIED_ONCE: &str = "queue = true\nretry = { attempts = 1 }\ncommand = [\"./noop.sh\"]\n";
const HOURLY: &str = r#"
    schedule = "@hourly"
    window = "hour"
    catch-up = "all"
    command = ["./noop.sh"]
"#;

/// Its files: `noop` is queued, `noop-once` too but is tried only once, `noop-hourly` has a window for every hour.
pub(crate) fn noop(name: &str) -> [(&'static str, String); 5] {
    [
        ("refrain.toml", format!("[project]\nname = \"{name}\"\n")),
        ("noop.sh", NOOP.to_owned()),
        ("jobs/noop.toml", QUEUED.to_owned()),
        ("jobs/noop-once.toml", TRIED_ONCE.to_owned()),
        ("jobs/noop-hourly.toml", HOURLY.to_owned()),
    ]
}

/// A shop with four jobs: daily exports, digests per day and customer, statements, and a queue of letters.
pub(crate) const SHOP: [(&str, &str); 9] = [
    (
        "refrain.toml",
        r#"
            [project]
            name = "shop"

            [databases]
            shop = "sqlite:shop.db"
        "#,
    ),
    (
        "jobs/export.toml",
        r#"schedule = "30 2 * * *"
timezone = "Europe/Berlin"
window   = "day"
start    = 2001-06-01
catch-up = "all"
command  = ["echo", "exporting", "{ds}"]
"#,
    ),
    (
        "jobs/digest.toml",
        r#"schedule = "@daily"
window   = "day"
database = "shop"
scopes   = "select name from customers order by name"
retry    = { attempts = 1 }
command  = ["./digest.sh", "for {scope}"]
"#,
    ),
    (
        "digest.sh",
        "#!/bin/sh\n[ \"$1\" != 'for bolt' ] || { echo 'bolt has moved' >&2; exit 7; }\necho \"digest $1\"\n",
    ),
    (
        "jobs/totals.toml",
        r#"
            schedule = "@daily"
            window = "day"
            database = "shop"
            sql = "insert into totals (day) values (:ds)"
        "#,
    ),
    (
        "jobs/letter.toml",
        "queue = true\nretry = { attempts = 1 }\ncommand = [\"./letter.sh\", \"{payload.to}\"]\n",
    ),
    (
        "letter.sh",
        "#!/bin/sh\n[ \"$1\" != Bob ] || { echo 'no such customer' >&2; exit 3; }\necho \"dear $1\"\n",
    ),
    (
        "jobs/slow.toml",
        r#"
            queue = true
            timeout = "1s"
            retry = { attempts = 1 }
            command = ["sleep", "60"]
        "#,
    ),
    (
        "jobs/payment.toml",
        "queue = true\ninterrupted = \"hold\"\ncommand = [\"sh\", \"-c\", \"kill -KILL $$\"]\n",
    ),
];
