//! The one place where a test polls: for events that are not announced, such as the end of a
//! process that is not our child. An event announced by a line, an exit or a notification is
//! awaited there.

use std::time::Duration;

use tokio::time::{interval, timeout};

/// A test that takes longer hangs. No test measures speed by it: even a machine under ten times the load must
/// not come close to it.
pub const DEADLINE: Duration = Duration::from_mins(10);

/// Returns when the condition holds; fails with this description if it does not within the deadline.
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
