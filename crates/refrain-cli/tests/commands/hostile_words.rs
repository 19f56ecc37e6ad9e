//! Text of others in the output of Refrain: server errors, table names, secrets that look like
//! JSON, suggested commands.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;

use crate::support::terminal::{on_a_terminal, sequences};
use crate::support::{Desk, PROGRAM, output_of};

const PROJECT: &str = "[project]\nname = \"shop\"\n";
const WORDS: &str = "queue = true\ncommand = [\"./words.sh\", \"{payload.word}\"]\nenv = [\"TOKEN\"]\n";
const PRINTS: &str = "#!/bin/sh\nprintf '%s\\n' \"$1\" \"$TOKEN\"\n";

fn desk() -> Desk {
    Desk::of(&[("refrain.toml", PROJECT), ("jobs/words.toml", WORDS), ("words.sh", PRINTS)])
}

/// A server that answers the first message with an error of any text.
fn hostile_server(words: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut length = [0; 4];
            if stream.read_exact(&mut length).is_ok() {
                let mut message = vec![0; u32::from_be_bytes(length) as usize - 4];
                let _ = stream.read_exact(&mut message);
                let fields = format!("SFATAL\0VFATAL\0C28000\0M{words}\0\0");
                let size = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
                let _ = stream.write_all(&[&b"E"[..], &size, fields.as_bytes()].concat());
            }
        }
    });
    port
}

#[test]
fn s9_the_error_of_a_server_does_not_control_the_terminal() {
    let desk = desk();
    let port = hostile_server("no entry \u{1b}]0;PWNED\u{7}\u{1b}[2J \u{202e}evil");
    let store = format!("postgres://me@127.0.0.1:{port}/shop?sslmode=disable");
    for line in [&["status"][..], &["run", "words#1"], &["--json", "status"], &["tick"]] {
        let result = on_a_terminal(&desk.command_of(&[&["--store", &store], line].concat()));
        assert!(result.stdout.contains("no entry"), "{line:?}: {result:?}");
        assert_eq!(sequences(&result.stdout), [""; 0], "{line:?}: {result:?}");
    }
}

#[test]
fn s9_bidirectional_and_invisible_characters_are_shown_escaped() {
    let desk = desk();
    let key = "a\u{202e}b\u{2066}c\u{200f}d\u{200b}e\u{feff}";
    desk.enqueue("words", key, r#"{"word":"x\u202ey"}"#);
    let run = format!("words#{key}");
    for line in [
        &["run", &run][..],
        &["show", &run],
        &["--json", "show", &run],
        &["logs", &run],
        &["why", &run],
        &["runs"],
        &["status"],
        &["trace", key],
        &["retry", &run],
        &["cancel", &run],
    ] {
        let result = on_a_terminal(&desk.command_of(line));
        assert_eq!(sequences(&result.stdout), [""; 0], "{line:?}: {result:?}");
        assert!(!result.stdout.is_empty(), "{line:?}");
    }
    output_of(&mut desk.command_of(&["show", &run]))
        .succeeds(&["a<U+202E>b<U+2066>c<U+200F>d<U+200B>e<U+FEFF>"]);
    let shown = output_of(&mut desk.command_of(&["--json", "show", &run]));
    let object: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(object["run"], serde_json::json!(run), "JSON says the same text");
}

#[test]
fn s19_redacted_json_stays_valid_json() {
    for secret in
        ["null", "\"run\"", "true,", "schema_version", "done", "words", "1234", "{\"a\":1}", "\\\\\\\\"]
    {
        let desk = desk();
        desk.enqueue("words", "1", r#"{"word":"x"}"#);
        for line in [
            "--json run words#1",
            "--json show words#1",
            "--json logs words#1",
            "--json check",
            "--json show no#1",
        ] {
            let shown = output_of(desk.command(line).env("TOKEN", secret));
            for text in shown.stdout.lines() {
                let object: Result<serde_json::Value, _> = serde_json::from_str(text);
                let object = object.unwrap_or_else(|error| panic!("{secret}: {line}: {error}: {text}"));
                assert_eq!(object["schema_version"], 1, "{secret}: {line}: {text}");
            }
        }
        let logs = output_of(desk.command("--json logs words#1").env("TOKEN", secret)).stdout;
        assert!(
            !logs.contains(&format!("{}\\n", secret.replace('\\', "\\\\").replace('"', "\\\""))),
            "{logs}"
        );
    }
}

#[test]
fn s21_a_misplaced_url_is_shown_without_its_password() {
    let desk = desk();
    let url = "postgres://me:hunter2-hunter2@db/shop";
    for line in [
        &["migrate", url][..],
        &["fsck", url],
        &["run", url],
        &["-C", url, "check"],
        &["serve", "--listen", url],
        &[url],
        &["--json", "run", url],
        &["--json", "migrate", url],
        &["enqueue", "words", "--key", url, "--payload", url],
        &["show", url],
    ] {
        let result = output_of(&mut desk.command_of(line));
        assert_ne!(result.code, Some(0), "{line:?}: {result:?}");
        assert!(!format!("{result:?}").contains("hunter2"), "{line:?}: {result:?}");
    }
}

#[test]
fn s21_check_warns_of_a_password_in_a_file() {
    let written = r#"
        [project]
        name = "shop"
        [store]
        url = "postgres://me:hunter2-hunter2@db/shop"
        [databases]
        shop = "postgres://me@db/shop?password=hunter3-hunter3"
        plain = "sqlite:x.db"
        taken = "postgres://me:${TOKEN}@db/shop"
    "#;
    let desk = Desk::of(&[("refrain.toml", written)]);
    let result = output_of(desk.command("check").env("TOKEN", "hunter4-hunter4"));
    result.succeeds(&["no problems"]);
    for place in ["[store] url", "[databases] shop"] {
        assert!(
            result.stderr.contains(&format!("warning: refrain.toml holds the password of {place}")),
            "{result:?}"
        );
    }
    assert_eq!(result.stderr.matches("warning").count(), 2, "{result:?}");
    assert!(!format!("{result:?}").contains("hunter"), "{result:?}");
    let json = output_of(desk.command("--json check").env("TOKEN", "hunter4-hunter4")).stdout;
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(object["warnings"].as_array().map(Vec::len), Some(2), "{json}");
}

/// The text after `refrain` in a hint is pasted into a shell, which must give the program the same arguments.
#[test]
fn s11_suggested_commands_quote_any_key() {
    let desk = desk();
    let key = "x$(touch canary);`id` 'q' & -b";
    let run = format!("words#{key}");
    let hints = |line: &[&str]| {
        let result = output_of(&mut desk.command_of(line));
        let text = result.stdout + &result.stderr;
        let parts = text
            .lines()
            .flat_map(|line| line.split("refrain ").skip(1).map(str::to_owned).collect::<Vec<_>>());
        parts.filter(|part| part.contains("canary")).collect::<Vec<String>>()
    };
    let mut found = 0;
    for line in [
        &["enqueue", "words", "--key", key, "--payload", r#"{"word":"x"}"#][..],
        &["enqueue", "words", "--key", key],
        &["logs", &run],
        &["run", &run],
        &["run", &run],
        &["show", &run],
        &["retry", &run],
        &["cancel", &run],
        &["show", "words#no$(touch canary)"],
        &["logs", "words#no$(touch canary)"],
        &["why", "words#no$(touch canary)"],
        &["run", "words#no$(touch canary)"],
        &["retry", "words#no$(touch canary)"],
        &["status", "words"],
    ] {
        for hint in hints(line) {
            let command = hint.split("; ").find(|part| part.contains("canary")).unwrap_or(&hint);
            let typed = format!("set -- {command}\nprintf '%s\\n' \"$@\"");
            let read = Command::new("sh").args(["-c", &typed]).current_dir(desk.path()).output().unwrap();
            let words = String::from_utf8(read.stdout).unwrap();
            assert!(words.lines().any(|word| word.contains("$(touch canary)")), "{line:?}: {hint}: {words}");
            assert!(!desk.file("canary").exists(), "{line:?}: {hint}");
            found += 1;
        }
    }
    assert!(found >= 8, "{found} hints");
    assert!(PROGRAM.ends_with("refrain"));
}
