//! Each guard is removed, one at a time: the tests must notice, or they prove nothing.

use crate::held::{killed_in_the_middle, late_mark};
use crate::reuse::met_a_daemon;
use crate::tree::{killed_with_a_family, stopped_past_its_lease, timed_out};
use crate::workspace::Workspace;
use refrain_harness::eventually::{DEADLINE, eventually};

#[tokio::test]
async fn without_ending_orphans_descendants_survive_the_worker() {
    let workspace = Workspace::sqlite().await;
    let weak = [("FAILPOINTS", "supervise.group-alone=return(weak)")];
    let left = killed_with_a_family(&workspace, &weak).await;
    assert!(left.iter().any(|words| words.contains("apart") || words.contains("orphan")), "{left:?}");
}

#[tokio::test]
async fn without_ending_orphans_a_command_meets_leftover_processes() {
    let workspace = Workspace::sqlite().await;
    let weak = [("FAILPOINTS", "supervise.group-alone=return(weak)")];
    met_a_daemon(&workspace, &weak).await;
    eventually("the daemon goes on beside it", DEADLINE, async || workspace.is_mixed()).await;
}

#[tokio::test]
async fn without_a_lease_check_a_worker_records_a_command_it_never_begins() {
    let workspace = Workspace::sqlite().await;
    assert_eq!(late_mark(&workspace, "begun.unheld=return(weak)").await, [1]);
    assert_eq!(workspace.lines("begun"), ["2", "1"]);
}

#[tokio::test]
async fn without_a_deadline_a_stopped_worker_lets_two_attempts_overlap() {
    let workspace = Workspace::sqlite().await;
    let weak = [("FAILPOINTS", "supervise.silence=return(weak)")];
    assert!(stopped_past_its_lease(&workspace, &weak).await, "{:?}", workspace.lines("ticks"));
}

#[tokio::test]
async fn without_waiting_a_timed_out_command_overlaps_the_next_attempt() {
    let workspace = Workspace::sqlite().await;
    // The first attempt runs as long as its worker, so that the next one overlaps with it however late it starts.
    let weak =
        [("FAILPOINTS", "leaving.unseen=return(weak)"), ("PROBE_GRACE", "600000"), ("PROBE_LEASE", "600000")];
    assert!(timed_out(&workspace, &weak).await, "{:?}", workspace.lines("ticks"));
}

#[tokio::test]
async fn without_the_begun_mark_a_held_command_runs_twice() {
    let workspace = Workspace::sqlite().await;
    let weak = [("FAILPOINTS", "begun.unmarked=return(weak)")];
    assert_eq!(killed_in_the_middle(&workspace, "held", &weak).await, ["1", "2"]);
}
