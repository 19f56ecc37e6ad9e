//! Two hundred kills on each database, by the harness that `./soak` runs with any number of them
//! (`examples/soak`). It ends well only if nothing was written twice, nothing is lost, nothing is wrong, and enough of
//! the kills struck inside of a transaction that writes.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::process::Command;

fn soak(store: &str) {
    let program = std::env::current_exe().unwrap();
    let program = program.ancestors().nth(2).unwrap().join("examples/soak");
    assert!(program.exists(), "there is no {}: build the examples", program.display());
    let output = Command::new(program).args(["--kills", "200", "--store", store]).output().unwrap();
    let [table, found] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "{found}\n{table}");
}

#[test]
fn f3_killed_two_hundred_times_a_sync_in_a_file_has_written_every_row_once() {
    soak("sqlite");
}

#[test]
fn f3_killed_two_hundred_times_a_sync_on_a_server_has_written_every_row_once() {
    soak("postgres");
}
