//! The one place where a test asks again and again: for what nobody announces, such as the end of a process that is
//! not our child. What is announced, by a line, an exit or a notification, is waited for there.

use std::time::Duration;

use tokio::time::{interval, timeout};

/// After this time a test is taken to hang. No test measures speed by it: a machine that has ten times as much to do must
/// not come near it.
pub const DEADLINE: Duration = Duration::from_mins(10);

/// Returns when the condition holds; fails with these words when it does not within the deadline.
pub async fn eventually<C: AsyncFnMut() -> bool>(what: &str, deadline: Duration, mut condition: C) {
    let mut beat = interval(Duration::from_millis(20));
    let holds = async {
        while {
            beat.tick().await;
            !condition().await
        } {}
    };
    assert!(timeout(deadline, holds).await.is_ok(), "within {deadline:?} it did not come true that {what}");
}
