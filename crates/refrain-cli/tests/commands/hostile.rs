//! Input that a shell, a path, a template or a database would act on is taken literally or refused.
//!
//! The project is in a folder of its own, so that anything written outside of it shows.

use std::fs;
use std::path::Path;

use sqlx::{Connection, SqliteConnection};

use crate::support::terminal::{on_a_terminal, sequences};
use crate::support::{CommandOutput, Desk, output_of};

const WORDS: [&str; 18] = [
    "; touch canary",
    "&& touch canary",
    "| touch canary",
    "$(touch canary)",
    "`touch canary`",
    "$HOME",
    "--help",
    "-rf",
    "-",
    "*",
    "~",
    "\\",
    "'\"",
    "../canary",
    "/etc/passwd",
    "@/etc/passwd",
    "%s%n",
    "1; drop table refrain_runs; --",
];

const FILES: [(&str, &str); 4] = [
    (
        "project/refrain.toml",
        r#"
            [project]
            name = "shop"

            [databases]
            shop = "sqlite:shop.db"
        "#,
    ),
    (
        "project/jobs/words.toml",
        "queue = true\ncommand = [\"./words.sh\", \"--name={payload.name}\", \"--\", \"{payload.name}\"]\n",
    ),
    ("project/words.sh", "#!/bin/sh\nprintf '%s\\0' \"$@\" \"$REFRAIN_RUN\" > got\n"),
    (
        "project/jobs/hourly.toml",
        "schedule = \"@hourly\"\nwindow = \"hour\"\ncommand = [\"./words.sh\", \"{ds}\"]\n",
    ),
];

/// A project in a folder, and a desk around it in which nothing may appear.
struct Guarded(Desk);

impl Guarded {
    fn new() -> Guarded {
        Guarded(Desk::of(&FILES))
    }

    fn refrain(&self, arguments: &[&str]) -> CommandOutput {
        output_of(&mut self.0.command_of(&[&["-C", "project"], arguments].concat()))
    }

    /// Asserts that the input is refused without moving a cursor. A pipe gets no escape sequence at all, so this uses
    /// a terminal.
    #[track_caller]
    fn refuses(&self, arguments: &[&str]) {
        is_refused(&self.refrain(arguments));
        if arguments.iter().any(|word| word.contains('\u{1b}')) {
            let output = on_a_terminal(&self.0.command_of(&[&["-C", "project"], arguments].concat()));
            assert_eq!(
                (output.code, sequences(&output.stdout)),
                (Some(2), vec![]),
                "{arguments:?}: {output:?}"
            );
            assert!(output.stdout.contains("error: "), "{output:?}");
        }
    }

    /// The arguments of the command of the last run.
    fn got(&self) -> Vec<String> {
        let text = fs::read_to_string(self.0.file("project/got")).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[track_caller]
    fn nothing_has_escaped(&self) {
        let names = |folder: &Path| -> Vec<String> {
            let entries = fs::read_dir(folder).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names(self.0.path()), ["project"], "something came to be beside the project");
        let known = [".refrain", "got", "jobs", "refrain.toml", "shop.db", "words.sh"];
        let inside = names(&self.0.file("project"));
        assert!(inside.iter().all(|name| known.contains(&name.as_str())), "{inside:?}");
        assert_eq!(names(&self.0.file("project/jobs")).len(), 2);
    }
}

/// Asserts that the input is refused in a few words.
#[track_caller]
fn is_refused(output: &CommandOutput) {
    assert_eq!((output.code, output.stdout.as_str()), (Some(2), ""), "{output:?}");
    assert!(output.stderr.starts_with("error: ") && output.stderr.len() < 2_000, "{output:?}");
    assert!(!output.stderr.contains("root:"), "{output:?}");
}

#[test]
fn s11_payload_values_arrive_as_literal_arguments() {
    let desk = Guarded::new();
    for (number, word) in WORDS.into_iter().chain(["a\nb", "", "\u{1f3b5} \u{202e}"]).enumerate() {
        let (key, payload) = (format!("{number}"), serde_json::json!({ "name": word }).to_string());
        desk.refrain(&["enqueue", "words", "--key", &key, "--payload", &payload]).succeeds(&["queued"]);
        desk.refrain(&["run", &format!("words#{key}")]).succeeds(&[": done"]);
        let run = format!("words#{key}");
        assert_eq!(desk.got(), [format!("--name={word}"), "--".into(), word.into(), run], "{word:?}");
    }
    desk.nothing_has_escaped();
}

#[test]
fn s11_every_command_takes_keys_literally() {
    let desk = Guarded::new();
    for word in WORDS {
        let (run, key) = (format!("words#{word}"), format!("--key={word}"));
        desk.refrain(&["enqueue", "words", &key, "--payload", r#"{"name":"x"}"#]).succeeds(&["queued"]);
        desk.refrain(&["enqueue", "words", &key]).succeeds(&["already enqueued"]);
        desk.refrain(&["run", &run]).succeeds(&[word, ": done"]);
        desk.refrain(&["run", "words", &key]).succeeds(&[word, "done already"]);
        assert_eq!(desk.got().last().unwrap(), &run);
        desk.refrain(&["show", &run]).succeeds(&[word, "done"]);
        desk.refrain(&["logs", &run]).succeeds(&[]);
        desk.refrain(&["why", &run]).succeeds(&[]);
        desk.refrain(&["trace", "--", word]).succeeds(&[word]);
        desk.refrain(&["--json", "show", &run]).succeeds(&[r#""state":"done""#]);
        is_refused(&desk.refrain(&["retry", &run]));
        assert_eq!(desk.refrain(&["cancel", &run]).code, Some(1));
    }
    desk.refrain(&["fsck"]).succeeds(&["0 findings"]);
    desk.nothing_has_escaped();
}

#[test]
fn s11_every_command_refuses_an_invalid_name() {
    let desk = Guarded::new();
    desk.refrain(&["migrate"]).succeeds(&[]);
    for word in WORDS.into_iter().chain(["a\nb", "\u{1b}[2J", "", "..", "a/b", "words\u{0}"]) {
        if word.contains('\0') {
            continue;
        }
        for command in [
            &["run", "--", word][..],
            &["run", "--", &format!("{word}#1")],
            &["run", "hourly", &format!("--window={word}")],
            &["run", "hourly", "--window=2001-06-09T14:00", &format!("--scope={word}")],
            &["enqueue", "--key=1", "--", word],
            &["next", "--", word],
            &["status", "--", word],
            &["runs", &format!("--job={word}")],
            &["show", "--", word],
            &["logs", "--", word],
            &["retry", "--", word],
            &["cancel", "--", word],
            &["pause", "--", word],
            &["resume", "--", word],
            &["checkpoint", "show", "--", word],
            &["prune", &format!("--older-than={word}")],
            &["tick", &format!("--now={word}")],
            &["serve", &format!("--listen={word}")],
            &["completions", "--", word],
            &["migrate", &format!("--print={word}")],
        ] {
            desk.refuses(command);
        }
    }
    for key in ["a\nb", "\u{1b}[2J", "\u{7f}", ""] {
        desk.refuses(&["enqueue", "words", &format!("--key={key}")]);
        desk.refuses(&["run", &format!("words#{key}")]);
    }
    desk.refrain(&["fsck"]).succeeds(&["0 findings"]);
    desk.nothing_has_escaped();
}

#[test]
fn s12_an_argument_that_begins_with_at_is_not_read_as_a_file() {
    let desk = Guarded::new();
    let arguments = desk.0.file("project/arguments");
    fs::write(&arguments, "migrate\n").unwrap();
    let at = format!("@{}", arguments.display());
    for line in [&[at.as_str()][..], &["@/etc/passwd"], &["run", &at], &["-C", &at, "check"]] {
        is_refused(&output_of(&mut desk.0.command_of(line)));
    }
    is_refused(&desk.refrain(&["--store", &at, "fsck"]));
    desk.refrain(&["migrate"]).succeeds(&[]);
    is_refused(&desk.refrain(&["enqueue", "words", "--key", "1", "--payload", "@/etc/passwd"]));
    fs::remove_file(arguments).unwrap();
    desk.refrain(&["enqueue", "words", "--key", "@/etc/passwd", "--payload", r#"{"name":"@/etc/passwd"}"#])
        .succeeds(&["words#@/etc/passwd: queued"]);
    desk.refrain(&["run", "words#@/etc/passwd"]).succeeds(&[": done"]);
    assert_eq!(desk.got()[2], "@/etc/passwd");
    desk.nothing_has_escaped();
}

#[test]
fn s10_a_path_cannot_leave_its_directory() {
    let desk = Guarded::new();
    // Without resolving the real path, the folder above `project/jobs/../..` would be `project/jobs/..`.
    let outside = output_of(&mut desk.0.command_of(&["-C", "project/jobs/../..", "check"]));
    outside.refuses(2, &["there is no refrain.toml in"]);
    desk.refrain(&["migrate"]).succeeds(&[]);
    for run in ["words#../../canary", "words#..", "words#/etc/passwd"] {
        desk.refrain(&["enqueue", "words", "--key", run.trim_start_matches("words#")]).succeeds(&[]);
        desk.refrain(&["logs", run]).succeeds(&[]);
    }
    for (name, sql) in
        [("up", "../secret.sql"), ("deep", "jobs/x.sql"), ("whole", "/etc/passwd.sql"), ("dots", "..sql")]
    {
        let job = format!(
            r#"
                schedule = "@daily"
                window = "day"
                database = "shop"
                sql = "{sql}"
            "#
        );
        desk.0.write(&format!("project/jobs/{name}.toml"), &job);
        let output = desk.refrain(&["check"]);
        assert_eq!(output.code, Some(2), "{sql}: {output:?}");
        assert!(!output.stderr.contains("root:"), "{sql}: {output:?}");
        fs::remove_file(desk.0.file(&format!("project/jobs/{name}.toml"))).unwrap();
    }
    desk.nothing_has_escaped();
}

#[test]
fn s14_no_part_of_a_value_is_evaluated() {
    let desk = Guarded::new();
    let values =
        ["{{7*7}}", "${7*7}", "#{7*7}", "{payload.name}", "{ds}", "${jndi:ldap://x/a}", "{{name}}", "%{x}"];
    for (number, value) in values.into_iter().enumerate() {
        let payload = serde_json::json!({ "name": value }).to_string();
        let run = format!("words#{number}");
        desk.refrain(&["enqueue", "words", &format!("--key={number}"), "--payload", &payload]).succeeds(&[]);
        desk.refrain(&["run", &run]).succeeds(&[": done"]);
        assert_eq!(desk.got()[2], value);
    }
    for word in ["{payload.name.upper()}", "{payload['name']}", "{1+1}", "{payload.name|shell}", "{env.HOME}"]
    {
        let job = format!("queue = true\ncommand = [\"./words.sh\", \"{word}\"]\n");
        desk.0.write("project/jobs/clever.toml", &job);
        desk.refrain(&["check"]).refuses(2, &["jobs/clever.toml"]);
    }
}

#[test]
fn s22_oversized_input_is_refused_at_once() {
    let desk = Guarded::new();
    desk.refrain(&["migrate"]).succeeds(&[]);
    let long = "x".repeat(100_000);
    is_refused(&desk.refrain(&["run", &format!("words#{long}")]));
    is_refused(&desk.refrain(&["run", &long]));
    is_refused(&desk.refrain(&["enqueue", "words", "--key", &long]));
    is_refused(&desk.refrain(&["run", "hourly", "--window", &long]));
    is_refused(&desk.refrain(&["trace", &long]));
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    is_refused(&desk.refrain(&["enqueue", "words", "--key", "deep", "--payload", &deep]));
    is_refused(&desk.refrain(&["next", "hourly", "--count", "99999"]));
    is_refused(&desk.refrain(&["runs", "--limit", "999999999"]));
    is_refused(&desk.refrain(&["status", "--windows", "65535"]));
    is_refused(&desk.refrain(&["prune", "--older-than", "99999999999999999999d"]));
    desk.0.write("project/jobs/large.toml", &format!("# {}\n", "x".repeat(2 * 1024 * 1024)));
    desk.refrain(&["check"]).refuses(2, &["large.toml cannot be read", "it has more than"]);
    desk.0.write("project/jobs/large.toml", &format!("queue = true\ncommand = {deep}\n"));
    let output = desk.refrain(&["check"]);
    assert_eq!(output.code, Some(2), "{:?}", output.code);
}

#[tokio::test]
async fn s23_values_are_bound_and_names_are_checked_against_the_schema() {
    let desk = Guarded::new();
    let file = desk.0.file("project/shop.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut shop = SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query("create table notes (text text)").execute(&mut shop).await.unwrap();
    let job =
        "queue = true\ndatabase = \"shop\"\nsql = \"insert into notes (text) values (:payload.text)\"\n";
    desk.0.write("project/jobs/note.toml", job);
    let words = ["'); drop table notes; --", "\" or 1=1; --", ":payload.text", "$1", "?", "null"];
    for (number, word) in words.into_iter().enumerate() {
        let payload = serde_json::json!({ "text": word }).to_string();
        desk.refrain(&["enqueue", "note", &format!("--key={number}"), "--payload", &payload]).succeeds(&[]);
        let ran = desk.refrain(&["run", &format!("note#{number}")]);
        assert_eq!(ran.code, Some(0), "{word:?}: {ran:?}");
    }
    desk.refrain(&["enqueue", "note", "--key=nul", "--payload", r#"{"text":"x\u0000y"}"#]).succeeds(&[]);
    let refused = desk.refrain(&["run", "note#nul"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stdout.contains("contains NUL"), "{refused:?}");
    let kept: Vec<String> =
        sqlx::query_scalar("select text from notes order by rowid").fetch_all(&mut shop).await.unwrap();
    assert_eq!(kept, words);
    shop.close().await.unwrap();
    desk.refrain(&["trace", "1' or '1'='1"]).refuses(2, &["nothing is recorded"]);
    desk.refrain(&["fsck"]).succeeds(&["0 findings"]);
}
