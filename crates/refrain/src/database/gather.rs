//! Collects writes of many tasks for the next transaction: many tasks have something to write, and one task
//! writes it for all.
//!
//! The writer answers all members of a transaction at once, and the tasks send their next writes one after
//! another. A writer that takes the first of them at once commits it alone, and the others wait for a second
//! commit. So it lets the tasks that are ready run once before it writes; if none is ready, that takes no
//! time.
//!
//! Rejected: `tokio::task::yield_now`. A task that yields like this continues only when its thread has
//! nothing else to do: if a job computes without a pause on that thread, the writer stands still although
//! other threads are idle.

use std::future::poll_fn;
use std::task::Poll;

use tokio::sync::mpsc::Receiver;

/// Waits for a member, and takes all members that are ready by the next turn, up to a limit. False if all
/// senders are gone.
pub(crate) async fn gather<T>(receiver: &mut Receiver<T>, members: &mut Vec<T>, limit: usize) -> bool {
    if receiver.recv_many(members, limit).await == 0 {
        return false;
    }
    turn().await;
    while members.len() < limit
        && let Ok(member) = receiver.try_recv()
    {
        members.push(member);
    }
    true
}

/// Moves to the end of the queue of ready tasks, from which any thread may take it.
async fn turn() {
    let mut has_passed = false;
    poll_fn(|context| {
        if has_passed {
            return Poll::Ready(());
        }
        has_passed = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::gather;

    #[tokio::test]
    async fn tasks_that_are_ready_are_members_of_one_group_up_to_a_limit() {
        let (sender, mut receiver) = channel(100);
        sender.try_send(0).unwrap();
        for task in 1..10 {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(task).await });
        }
        drop(sender);
        let mut members = Vec::new();
        assert!(gather(&mut receiver, &mut members, 8).await);
        assert_eq!(members.len(), 8);
        members.clear();
        assert!(gather(&mut receiver, &mut members, 8).await);
        assert_eq!(members.len(), 2);
        assert!(!gather(&mut receiver, &mut members, 8).await, "no task is left");
    }
}
