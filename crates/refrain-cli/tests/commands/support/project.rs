//! A project whose jobs do nothing, with which a store, a schedule and the ends of a command can be tried.
//!
//! What makes a run of them last or fail is its payload: `{"until": PATH}`, `{"error": TEXT}`.

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
const HOURLY: &str =
    "schedule = \"@hourly\"\nwindow = \"hour\"\ncatch-up = \"all\"\ncommand = [\"./noop.sh\"]\n";

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
