//! Two hundred kills on each database, by the harness that `./soak` runs with any number of them
//! (`crates/refrain-harness/programs/soak`). It succeeds only if no row was written twice, lost or wrong, and enough of
//! the kills struck inside a transaction that writes.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the failure report")]

use std::process::Command;

use refrain_harness::programs::program;

fn soak(store: &str) {
    let output = Command::new(program("soak")).args(["--kills", "200", "--store", store]).output().unwrap();
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
