//! Members of the next transaction, when many tasks have something to write and one task writes it for all.
//!
//! The writer answers all members of a transaction at once, and they come back one after another. A writer that takes the first
//! of them at once commits it alone, and the others wait for a second commit. So it lets the tasks that are ready have one turn
//! before it writes; when none is ready, that takes no time.

use tokio::sync::mpsc::Receiver;

/// Waits for a member, and takes all that are there by the next turn, up to a limit. False: there will be none.
pub(crate) async fn gather<T>(receiver: &mut Receiver<T>, members: &mut Vec<T>, limit: usize) -> bool {
    if receiver.recv_many(members, limit).await == 0 {
        return false;
    }
    tokio::task::yield_now().await;
    while members.len() < limit
        && let Ok(member) = receiver.try_recv()
    {
        members.push(member);
    }
    true
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use super::gather;

    #[tokio::test]
    async fn tasks_that_are_ready_are_members_of_one_group_up_to_a_limit() {
        let (sender, mut receiver) = channel(100);
        for task in 0..10 {
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
