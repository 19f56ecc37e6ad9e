//! Each guard taken away, one at a time: the stories must notice, or they prove nothing.

use crate::desk::Desk;
use crate::held::{killed_in_the_middle, late_mark};
use crate::reuse::met_a_daemon;
use crate::support::eventually::{DEADLINE, eventually};
use crate::tree::{killed_with_a_family, stopped_past_its_lease, timed_out};

#[tokio::test]
async fn without_the_burial_of_orphans_the_family_survives_its_worker() {
    let desk = Desk::sqlite().await;
    let weak = [("FAILPOINTS", "supervise.group-alone=return(weak)")];
    let left = killed_with_a_family(&desk, &weak).await;
    assert!(left.iter().any(|words| words.contains("apart") || words.contains("orphan")), "{left:?}");
}

#[tokio::test]
async fn without_the_burial_of_orphans_a_command_meets_what_the_one_before_has_left() {
    let desk = Desk::sqlite().await;
    let weak = [("FAILPOINTS", "supervise.group-alone=return(weak)")];
    met_a_daemon(&desk, &weak).await;
    eventually("the daemon goes on beside it", DEADLINE, async || desk.is_mixed()).await;
}

#[tokio::test]
async fn without_a_look_at_its_lease_a_worker_that_lost_it_marks_what_it_never_begins() {
    let desk = Desk::sqlite().await;
    assert_eq!(late_mark(&desk, "begun.unheld=return(weak)").await, [1]);
    assert_eq!(desk.lines("begun"), ["2", "1"]);
}

#[tokio::test]
async fn without_a_deadline_two_attempts_meet_when_a_worker_is_stopped() {
    let desk = Desk::sqlite().await;
    let weak = [("FAILPOINTS", "supervise.silence=return(weak)")];
    assert!(stopped_past_its_lease(&desk, &weak).await, "{:?}", desk.lines("ticks"));
}

#[tokio::test]
async fn without_waiting_for_its_end_a_command_that_timed_out_meets_the_next_attempt() {
    let desk = Desk::sqlite().await;
    // The first attempt stays for as long as its worker does, so that the next one meets it however late it comes.
    let weak =
        [("FAILPOINTS", "leaving.unseen=return(weak)"), ("PROBE_GRACE", "600000"), ("PROBE_LEASE", "600000")];
    assert!(timed_out(&desk, &weak).await, "{:?}", desk.lines("ticks"));
}

#[tokio::test]
async fn without_a_mark_a_command_that_is_held_is_executed_twice() {
    let desk = Desk::sqlite().await;
    let weak = [("FAILPOINTS", "begun.unmarked=return(weak)")];
    assert_eq!(killed_in_the_middle(&desk, "held", &weak).await, ["1", "2"]);
}
