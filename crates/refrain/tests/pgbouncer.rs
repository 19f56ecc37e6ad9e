//! A pooler in transaction mode between Refrain and the server: many clients, few connections, and
//! no session state outlives its transaction. The promises of the store are tested there by
//! `crates/refrain/tests/conformance/main.rs` too.

use std::collections::BTreeSet;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::{SETTINGS, Seen, is_sound, open, open_with};
use tokio::task::JoinSet;

#[tokio::test]
async fn f44_many_clients_behind_a_pooler_do_each_key_once() {
    let database = TestDatabase::pgbouncer().await;
    let seen = Seen::default();
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(open(&database, [seen.job("welcome")]).await);
    }
    let mut tasks = JoinSet::new();
    for client in clients.clone() {
        tasks.spawn(async move {
            let mut new = 0;
            for number in 0..50 {
                new += usize::from(
                    client.enqueue("welcome", &format!("{number:02}"), &()).await.unwrap().is_new(),
                );
            }
            client.tick().await.unwrap();
            new
        });
    }
    let new: usize = tasks.join_all().await.into_iter().sum();
    assert_eq!(new, 50);
    clients.first().unwrap().tick().await.unwrap();
    let began = seen.all();
    assert_eq!((began.len(), began.iter().collect::<BTreeSet<_>>().len()), (50, 50));
    is_sound(clients.first().unwrap()).await;
}

#[tokio::test]
async fn f44_without_notifications_work_is_found_by_polling() {
    let database = TestDatabase::pgbouncer().await;
    let seen = Seen::default();
    let worker = open_with(&database, SETTINGS.slots(4), [seen.job("welcome")]).await;
    let serving = worker.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    let client = open(&database, [Seen::default().job("welcome")]).await;
    for round in 0..5 {
        let keys = (0..20).map(|number| (format!("{round}-{number}"), ()));
        client.enqueue_many("welcome", keys).await.unwrap();
        eventually("the round is done", DEADLINE, async || client.open_runs().await.unwrap() == 0).await;
    }
    stop.drain();
    assert_eq!(serving.await.unwrap().ended, 100);
    assert_eq!(seen.all().len(), 100);
    is_sound(&client).await;
}
