//! Help and version go to stdout, usage errors to stderr with exit code 2.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::process::{Command, Output};

fn refrain(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_refrain")).args(arguments).output().unwrap()
}

#[test]
fn help_and_version_go_to_stdout() {
    for (argument, shown) in
        [("--help", "Run it again. Nothing happens twice."), ("--version", "refrain 0.1.0")]
    {
        let output = refrain(&[argument]);
        assert_eq!(output.status.code(), Some(0), "{argument}");
        assert!(String::from_utf8(output.stdout).unwrap().contains(shown), "{argument}");
        assert!(output.stderr.is_empty(), "{argument}");
    }
}

#[test]
fn a_usage_error_is_reported_on_stderr_with_exit_code_2() {
    for arguments in [&[][..], &["--bogus"], &["nonsense"]] {
        let output = refrain(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}
