//! Stored text of programs, sources, operators and databases is shown on a terminal and cannot
//! control it.
//!
//! Each command that shows stored text runs on a real pseudo-terminal, on both databases. A pipe
//! proves nothing, because escape sequences are stripped there.

use rustix::process::Signal;

use crate::support::children::ChildProcess;
use crate::support::postgres::Scratch;
use crate::support::terminal::{on_a_terminal, sequences};
use crate::support::{CommandOutput, Desk};

/// Sets the title of a window and clears a screen.
const SEQUENCES: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J";

const PRINTS: &str = "#!/bin/sh\nprintf 'said \\033]0;PWNED\\007\\033[2J\\n'\n\
    printf 'told \\033]0;PWNED\\007\\033[2J\\n' >&2\nexit 1\n";
const WORDS: &str = "queue = true\nretry = { attempts = 1 }\ncommand = [\"./prints.sh\"]\n";
const FEED: &str = r#"
    queue = true
    retry = { attempts = 1 }
    command = ["cat", "lines"]
    output = "units"
    [unit]
    key = "u:{id}"
    command = ["./prints.sh"]
    [cursor]
    name = "pages"
"#;
const LINES: &str = "{\"id\":1,\"note\":\"note \\u001b]0;PWNED\\u0007\\u001b[2J\"}\n\
    {\"$cursor\":\"page \\u001b]0;PWNED\\u0007\\u001b[2J\"}\n";
/// The error of the database quotes the unknown column.
const BROKEN: &str = r#"
    queue = true
    retry = { attempts = 1 }
    database = "shop"
    sql = "select x.\"no \u001b]0;PWNED\u0007\u001b[2J\" from (select 1 as n) as x"
"#;

fn desk(url: &str) -> Desk {
    let project = format!(
        r#"
            [project]
            name = "shop"

            [databases]
            shop = "{url}"
        "#
    );
    let files = [
        ("refrain.toml", project.as_str()),
        ("jobs/words.toml", WORDS),
        ("jobs/feed.toml", FEED),
        ("jobs/broken.toml", BROKEN),
        ("prints.sh", PRINTS),
        ("lines", LINES),
    ];
    Desk::of(&files)
}

/// Asserts that a command shows escape sequences as text on a terminal. `word` occurs beside the sequences.
#[track_caller]
fn shows(desk: &Desk, line: &[&str], word: &str) -> CommandOutput {
    let output = on_a_terminal(&desk.command_of(line));
    assert!(output.stdout.contains(word) && output.stdout.contains("PWNED"), "{line:?}: {word}: {output:?}");
    assert_eq!(sequences(&output.stdout), [""; 0], "{line:?}: {output:?}");
    output
}

async fn nothing_that_was_kept_acts_on_a_terminal(desk: &Desk) {
    desk.refrain("migrate").succeeds(&[]);
    for job in ["words", "feed", "broken"] {
        desk.refrain(&format!("enqueue {job} --key 1")).succeeds(&["queued"]);
    }
    shows(desk, &["run", "words#1"], "told");
    for json in [&[][..], &["--json"]] {
        let with = |line: &[&'static str]| [json, line].concat();
        shows(desk, &with(&["logs", "words#1"]), "said");
        shows(desk, &with(&["show", "words#1"]), "told");
    }
    let broken = shows(desk, &["run", "broken#1"], "no ");
    assert_eq!(broken.code, Some(1), "{broken:?}");
    shows(desk, &["show", "broken#1"], "no ");
    shows(desk, &["why", "broken#1"], "no ");
    let fed = on_a_terminal(&desk.command("run feed#1"));
    assert_eq!(sequences(&fed.stdout), [""; 0], "{fed:?}");
    for json in [&[][..], &["--json"]] {
        let with = |line: &[&'static str]| [json, line].concat();
        shows(desk, &with(&["trace", "u:1"]), "note");
        shows(desk, &with(&["checkpoint", "show"]), "page");
    }
    let why = format!("because {SEQUENCES}");
    let retried = on_a_terminal(&desk.command_of(&["retry", "words#1", "--why", &why]));
    assert_eq!(sequences(&retried.stdout), [""; 0], "{retried:?}");
    shows(desk, &["audit"], "because");
    shows(desk, &["--json", "audit"], "because");

    for job in ["words", "feed", "broken"] {
        desk.refrain(&format!("enqueue {job} --key 2")).succeeds(&["queued"]);
    }
    for log in ["text", "json"] {
        desk.refrain(&format!("enqueue broken --key {log}")).succeeds(&["queued"]);
        // The log is written without changes, to a terminal and to a pipe.
        let mut serve = ChildProcess::spawn(&mut desk.command(&format!("serve --listen none --log {log}")));
        serve.wait_for_line("PWNED").await;
        serve.signal(Signal::TERM);
        let ended = serve.finish().await;
        let logged = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), sequences(&logged)), (Some(0), vec![]), "{logged}");
    }
}

#[tokio::test]
async fn s9_no_stored_text_controls_the_terminal_sqlite() {
    let desk = desk("sqlite:shop.db");
    desk.write("shop.db", "");
    nothing_that_was_kept_acts_on_a_terminal(&desk).await;
}

#[tokio::test]
async fn s9_no_stored_text_controls_the_terminal_postgres() {
    let scratch = Scratch::create().await;
    let desk = desk(&scratch.url()).with_store(&scratch.url());
    nothing_that_was_kept_acts_on_a_terminal(&desk).await;
}
