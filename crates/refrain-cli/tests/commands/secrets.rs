//! Secrets are in no output and no stored text, and no other process can read them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::address::unused_port;
use crate::support::{CommandOutput, Desk, output_of};

const TOKEN: &str = "tok-canary/77+x=&é";
const PASSWORD: &str = "pw canary:88@";

/// Prints its secrets in the forms that programs print: literally, encoded, in two pieces.
const LEAK: &str = r#"#!/bin/sh
echo "token $API_TOKEN"
echo "Authorization: Bearer $API_TOKEN" >&2
printf %s "$API_TOKEN" | base64
printf %s "x$API_TOKEN" | base64 -w0; echo
printf %s "$API_TOKEN" | od -An -tx1 | tr -d ' \n'; echo
printf %s "$API_TOKEN" | cut -c1-7 | tr -d '\n'; printf %s "$API_TOKEN" | cut -c8-
echo "failed with $API_TOKEN" >&2
exit 9
"#;

fn desk() -> Desk {
    Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        (
            "jobs/leak.toml",
            r#"
                queue = true
                retry = { attempts = 1 }
                env = ["API_TOKEN"]
                command = ["./leak.sh"]
            "#,
        ),
        ("leak.sh", LEAK),
    ])
}

/// The token in every form that would be of use to an attacker.
fn forms() -> [&'static str; 5] {
    // `printf %s TOKEN | base64`, the same one byte later, hexadecimal, percent-encoded.
    [
        TOKEN,
        "dG9rLWNhbmFyeS83Nyt4PSbDqQ",
        "b2stY2FuYXJ5Lzc3K3g9JsOp",
        "746f6b2d63616e6172792f37372b783d26c3a9",
        "tok-canary%2F77%2Bx%3D%26%C3%A9",
    ]
}

#[track_caller]
fn is_silent(what: &str, text: &str) {
    for secret in forms().into_iter().chain([PASSWORD, "pw%20canary"]) {
        assert!(!text.contains(secret), "{secret:?} is in {what}: {text}");
    }
}

#[test]
fn s19_secrets_that_a_command_prints_are_redacted() {
    let desk = desk();
    let refrain = |line: &str| -> CommandOutput { output_of(desk.command(line).env("API_TOKEN", TOKEN)) };
    let ran = refrain("run leak#1");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("exit code 9") && ran.stdout.contains("••••"), "{ran:?}");
    let payload = format!(r#"{{"note":"{TOKEN}"}}"#);
    output_of(
        desk.command_of(&["enqueue", "leak", "--key", "2", "--payload", &payload]).env("API_TOKEN", TOKEN),
    )
    .succeeds(&[]);
    for line in [
        "--json run leak#1",
        "tick",
        "logs leak#1",
        "--json logs leak#1",
        "show leak#1",
        "show leak#2",
        "--json show leak#2",
        "why leak#1",
        "status leak",
        "--json status",
        "runs",
        "trace 1",
        "--json trace 1",
        "check",
        "--json retry leak#1",
    ] {
        let output = refrain(line);
        is_silent(line, &output.stdout);
        is_silent(line, &output.stderr);
    }
    // Output is stored without secrets. A payload is stored unchanged: the caller who enqueues it chose to.
    let logs = refrain("logs leak#1 --attempt 1").stdout;
    assert!(logs.contains("token ••••") && logs.contains("failed with ••••"), "{logs}");
    let connection = fs::read(desk.file(".refrain/refrain.db")).unwrap();
    let wal = fs::read(desk.file(".refrain/refrain.db-wal")).unwrap_or_default();
    let kept = String::from_utf8_lossy(&[connection, wal].concat()).replace(&payload, "");
    is_silent("the store", &kept);
}

#[test]
fn s19_no_error_contains_the_password_of_a_url() {
    let desk = Desk::of(
        &[
            (
                "refrain.toml",
                &format!(
                    r#"
                        [project]
                        name = "shop"
                        [store]
                        url = "postgres://ada:${{STORE_PASSWORD}}@127.0.0.1:{}/shop"
                    "#,
                    unused_port()
                ),
            ),
            ("jobs/hello.toml", &"queue = true\ncommand = [\"echo\", \"hello\"]\n".to_owned()),
        ]
        .map(|(name, text)| (name, text.as_str())),
    );
    let encoded = "pw%20canary%3A88%40";
    // Each tries for a while, so they run at the same time.
    std::thread::scope(|scope| {
        for line in ["run hello#1", "--json run hello#1", "status", "migrate", "--json fsck", "tick"] {
            let desk = &desk;
            scope.spawn(move || {
                let output = output_of(desk.command(line).env("STORE_PASSWORD", encoded));
                assert_eq!(output.code, Some(75), "{line}: {output:?}");
                is_silent(line, &format!("{}{}", output.stdout, output.stderr));
                assert!(!format!("{output:?}").contains(encoded), "{line}: {output:?}");
            });
        }
    });
    let missing = desk.refrain("check");
    missing.refuses(2, &["the environment variable STORE_PASSWORD is not set"]);
    let wrong = "mysql://ada:pw-canary-99@host/shop";
    let output = output_of(desk.command("fsck").env("STORE_PASSWORD", encoded).env("REFRAIN_STORE", wrong));
    output.refuses(2, &["mysql://ada:"]);
    assert!(!format!("{output:?}").contains("pw-canary-99"), "{output:?}");
}

#[test]
fn s20_a_command_gets_only_the_permitted_environment() {
    let desk = Desk::of(&[
        ("refrain.toml", "[project]\nname = \"shop\"\n"),
        ("jobs/look.toml", "queue = true\nenv = [\"API_TOKEN\"]\ncommand = [\"./look.sh\"]\n"),
        (
            "look.sh",
            "#!/bin/sh\ntr '\\0' '\\n' < /proc/self/environ > own\ntr '\\0' '\\n\
             ' < /proc/$PPID/environ > above\n",
        ),
    ])
    .with_store("sqlite:store.db");
    let mut command = desk.command("run look#1");
    command.env("API_TOKEN", TOKEN).env("STORE_PASSWORD", PASSWORD).env("AWS_SECRET_ACCESS_KEY", PASSWORD);
    command.env("LD_PRELOAD_X", "1").env("REFRAIN_SECRET", PASSWORD);
    output_of(&mut command).succeeds(&[": done"]);
    let own = fs::read_to_string(desk.file("own")).unwrap();
    assert!(own.contains(&format!("API_TOKEN={TOKEN}")) && !own.contains(PASSWORD), "{own}");
    let names: BTreeSet<&str> = own.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    for name in ["REFRAIN_STORE", "REFRAIN_SECRET", "STORE_PASSWORD", "AWS_SECRET_ACCESS_KEY", "LD_PRELOAD_X"]
    {
        assert!(!names.contains(name), "{name}: {names:?}");
    }
    for name in ["PATH", "REFRAIN_PROJECT", "REFRAIN_RUN", "REFRAIN_IDEMPOTENCY_KEY"] {
        assert!(names.contains(name), "{name}: {names:?}");
    }
    let above = fs::read_to_string(desk.file("above")).unwrap();
    assert!(!above.contains(TOKEN) && !above.contains(PASSWORD), "{above}");
}

#[test]
fn s20_a_store_and_its_backup_are_readable_by_their_owner_only() {
    let desk = Desk::new();
    let mut shell = Command::new("sh");
    let script = "umask 0; \"$0\" run noop#1 && \"$0\" backup copy.db";
    shell.args(["-c", script]).arg(crate::support::PROGRAM).current_dir(desk.path());
    output_of(&mut shell).succeeds(&["copied the store"]);
    let mode = |name: &str| fs::metadata(desk.file(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".refrain"), mode(".refrain/refrain.db"), mode("copy.db")), (0o700, 0o600, 0o600));
}
