//! Hostile files: not regular files, too large, or with terminal escape sequences.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::Signal;

use crate::support::children::ChildProcess;
use crate::support::terminal::{on_a_terminal, sequences};
use crate::support::{Desk, output_of};

const PROJECT: &str = r#"
    [project]
    name = "shop"

    [databases]
    shop = "sqlite:shop.db"
"#;
const SOUND: &str = "queue = true\ncommand = [\"echo\", \"hello\"]\n";
const WITH_SQL: &str = "queue = true\ndatabase = \"shop\"\nsql = \"x.sql\"\n";
/// Sets the title of a window, clears a screen, and reverses the text direction.
const SEQUENCES: &str = "\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{9b}2J\u{202e}";

fn desk() -> Desk {
    Desk::of(&[("refrain.toml", PROJECT), ("jobs/sound.toml", SOUND)])
}

fn pipe(desk: &Desk, name: &str) {
    rustix::fs::mkfifoat(rustix::fs::CWD, desk.file(name), rustix::fs::Mode::RWXU).unwrap();
}

/// The job of `x.toml` is left out and named; the other one works.
fn leaves_only_the_wrong_file_out(desk: &Desk) {
    for (line, code) in [("status", 0), ("run sound#1", 0), ("tick", 1), ("next sound", 2)] {
        let output = desk.refrain(line);
        assert_eq!(output.code, Some(code), "{line}: {output:?}");
        assert!(output.stderr.contains("jobs/x.toml") || line == "next sound", "{line}: {output:?}");
    }
}

#[test]
fn s22_a_pipe_in_place_of_a_file_is_refused_without_waiting() {
    let desk = desk();
    pipe(&desk, "jobs/x.toml");
    desk.refrain("check").refuses(2, &["jobs/x.toml cannot be read: it is not a regular file"]);
    leaves_only_the_wrong_file_out(&desk);
    fs::remove_file(desk.file("jobs/x.toml")).unwrap();
    pipe(&desk, "jobs/x.sql");
    desk.write("jobs/y.toml", WITH_SQL);
    desk.refrain("check").refuses(2, &["`x.sql` cannot be read: it is not a regular file"]);
    fs::remove_file(desk.file("jobs/x.sql")).unwrap();
    symlink("/dev/zero", desk.file("jobs/x.sql")).unwrap();
    desk.refrain("check").refuses(2, &["it is a link to a file outside the project"]);
}

#[tokio::test]
async fn s22_unreadable_files_do_not_keep_serve_from_working_or_ending() {
    let desk = desk();
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen none"));
    serve.wait_for_line("serving").await;
    pipe(&desk, "jobs/x.toml");
    serve.wait_for_line("their jobs stay as they were").await;
    fs::remove_file(desk.file("jobs/x.toml")).unwrap();
    serve.wait_for_line("the project was reloaded").await;
    desk.write("jobs/x.toml", &"=\n".repeat(500_000));
    serve.wait_for_line("reloading the project").await;
    serve.signal(Signal::TERM);
    let ended = serve.finish().await;
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
}

#[test]
fn s22_an_oversized_sql_file_is_reported_as_such() {
    let desk = desk();
    desk.write("jobs/y.toml", WITH_SQL);
    desk.write("jobs/x.sql", &format!("select 1 -- {}\n", "x".repeat(1024 * 1024)));
    desk.refrain("check").refuses(2, &["`x.sql` cannot be read: it has more than 1048576 bytes"]);
}

#[test]
fn s10_a_link_out_of_the_project_is_not_followed() {
    let desk = Desk::of(&[
        ("project/refrain.toml", PROJECT),
        ("project/jobs/sound.toml", SOUND),
        ("project/shared/inside.toml", SOUND),
        ("shadow", "root:$6$secret-hash:19000\n"),
    ]);
    let refrain = |line: &[&str]| output_of(&mut desk.command_of(&[&["-C", "project"], line].concat()));
    symlink("../shared/inside.toml", desk.file("project/jobs/inside.toml")).unwrap();
    refrain(&["check"]).succeeds(&["inside"]);
    for (link, name) in
        [("jobs/x.toml", "jobs/x.toml"), ("jobs/x.sql", "x.sql"), ("refrain.toml", "refrain.toml")]
    {
        let path = desk.file("project").join(link);
        fs::remove_file(&path).ok();
        symlink("../".repeat(link.matches('/').count() + 1) + "shadow", &path).unwrap();
        desk.write("project/jobs/y.toml", WITH_SQL);
        let output = refrain(&["check"]);
        output.refuses(2, &[name, "it is a link to a file outside the project"]);
        assert!(!output.stderr.contains("secret-hash"), "{output:?}");
        fs::remove_file(&path).unwrap();
    }
    desk.write("project/refrain.toml", PROJECT);
    desk.write("foreign/x.toml", "password = \"secret-hash\"\n");
    fs::rename(desk.file("project/jobs"), desk.file("project/inside")).unwrap();
    symlink("../foreign", desk.file("project/jobs")).unwrap();
    for line in [&["check"][..], &["--json", "check"], &["tick"], &["status"]] {
        let output = refrain(line);
        assert_eq!(output.code, Some(2), "{line:?}: {output:?}");
        assert!(
            output.stderr.contains("jobs cannot be read: it is a link to a folder outside"),
            "{line:?}: {output:?}"
        );
        assert!(!format!("{output:?}").contains("secret-hash"), "{line:?}: {output:?}");
    }
    fs::remove_file(desk.file("project/jobs")).unwrap();
    symlink("inside", desk.file("project/jobs")).unwrap();
    fs::remove_file(desk.file("project/inside/y.toml")).unwrap();
    refrain(&["check"]).succeeds(&["inside"]);
}

#[test]
fn s22_an_error_in_a_very_long_line_is_shown_quickly() {
    let desk = desk();
    let long = "a".repeat(100_000);
    desk.write("jobs/x.toml", &format!("queue = true\ncommand = [\"{long}\", 1]\n"));
    let drawn = desk.refrain("check");
    drawn.refuses(
        2,
        &["each element of `command` is a string", "jobs/x.toml:2:100016", "1 problem in 1 file"],
    );
    assert!(drawn.stderr.len() < 4_000, "{}", drawn.stderr.len());
    assert_eq!(desk.refrain("--json check").code, Some(2));
    leaves_only_the_wrong_file_out(&desk);
    desk.write("jobs/x.toml", WITH_SQL);
    desk.write("jobs/x.sql", &format!("select '{long}', :nothing, '{long}'"));
    desk.refrain("check").refuses(2, &[":nothing", "jobs/x.sql:1:"]);
    desk.write("jobs/x.sql", &format!("select '{long}"));
    desk.refrain("check").refuses(2, &["jobs/x.sql:1:8"]);
}

#[test]
fn s22_a_file_full_of_errors_is_refused_with_a_bounded_list() {
    let desk = desk();
    let templates = format!("queue = true\ncommand = [\"echo\", {}]\n", "\"{\", ".repeat(20_000));
    let names = format!("queue = true\ncommand = [\"echo\", {}]\n", "\"{no}\", ".repeat(20_000));
    let keys: String = (0..5_000).map(|number| format!("key{number} = 1\n")).collect::<Vec<_>>().concat();
    for text in ["=\n".repeat(20_000), templates, names, keys] {
        desk.write("jobs/x.toml", &text);
        for line in ["check", "--json check"] {
            let output = desk.refrain(line);
            assert_eq!(output.code, Some(2), "{:?}", output.code);
            let printed = output.stderr.len() + output.stdout.len();
            assert!(printed < 200_000, "{printed} bytes: {line}");
            assert!(output.stderr.contains("there are more"), "{}", &text[..40]);
        }
    }
}

#[tokio::test]
async fn s22_many_files_full_of_errors_are_refused_with_a_bounded_list() {
    let desk = desk();
    for number in 0..300 {
        desk.write(
            &format!("jobs/x{number:03}.toml"),
            "queue = true\ncommand = [\"true\"]\ntimout = \"5m\"\n",
        );
    }
    let output = desk.refrain("check");
    output.refuses(
        2,
        &["and 100 more problems in 100 files: fix those above first", "300 problems in 300 files"],
    );
    assert_eq!(output.stderr.matches("`timout`").count(), 200);
    let json = desk.refrain("--json check").stdout;
    let object: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(object["problems"].as_array().map(Vec::len), Some(300), "programs get all of them");
    let mut serve = ChildProcess::spawn(&mut desk.command("serve --listen none"));
    let others = serve.wait_for_line("more problems in files are not listed here").await;
    assert!(others.contains("others=100"), "{others}");
    serve.wait_for_line("serving").await;
    serve.signal(Signal::TERM);
    let ended = serve.finish().await;
    let printed = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(printed.matches("a file is invalid").count(), 200, "{}", printed.len());
}

#[test]
fn s9_no_file_or_file_name_controls_the_terminal() {
    let desk = desk();
    desk.write(
        "jobs/x.toml",
        &format!("queue = true\ncommand = [\"echo\"] # {SEQUENCES}\ntimout = \"5m\"\n"),
    );
    desk.write(&format!("jobs/{SEQUENCES}.toml"), "queue = 1\n");
    desk.write(&format!("{SEQUENCES}/refrain.toml"), PROJECT);
    desk.write(&format!("{SEQUENCES}/jobs/x.toml/y"), "");
    let folder = desk.file(SEQUENCES);
    for line in [
        &["check"][..],
        &["--json", "check"],
        &["-C", folder.to_str().unwrap(), "check"],
        &["-C", SEQUENCES, "check"],
        &["run", SEQUENCES],
        &["show", SEQUENCES],
        &[SEQUENCES],
        &["run", "x", "--window", SEQUENCES],
        &["--json", "run", SEQUENCES],
    ] {
        let output = on_a_terminal(&desk.command_of(line));
        assert_ne!(output.code, Some(0), "{line:?}: {output:?}");
        assert!(output.stdout.contains("error"), "{line:?}: {output:?}");
        assert_eq!(sequences(&output.stdout), [""; 0], "{line:?}: {:?}", output.stdout);
    }
    let output = on_a_terminal(&desk.command_of(&["run", "sound#1"]));
    assert_eq!((output.code, sequences(&output.stdout)), (Some(0), vec![]), "{output:?}");
    assert!(output.stdout.contains("ignored"), "{output:?}");
}
