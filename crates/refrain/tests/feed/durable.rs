//! A reservation is on disk before its request is sent, whatever the settings of the server.

use rustix::process::Signal;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use crate::calls::{FINE, calling};
use crate::receiver::{Receiver, Reply};
use crate::sync::{LEASE, RUN, lines};
use refrain_harness::TestDatabase;
use refrain_harness::server::PrivateServer;

/// The server crashes as soon as the receiver has got the call.
#[tokio::test]
async fn f21_a_received_call_is_in_doubt_even_if_the_database_loses_commits() {
    let mut server = PrivateServer::create().await;
    let (name, receiver) = (server.create_database().await, Receiver::answering(|_| Reply::Silence).await);
    let url = server.url(&name);
    let mut stranger = PgConnection::connect(&url).await.unwrap();
    let hasty = format!("alter database {name} set synchronous_commit = off");
    stranger.execute(AssertSqlSafe(hasty)).await.unwrap();
    let sync = calling(TestDatabase::sqlite().await, &receiver, "", "").await;
    sync.shop.settings(&url, &format!("shop = \"{url}\""));
    sync.source(lines(1..=1));
    sync.prepare().await;

    let first = sync.shop.process(&["run", RUN], &[LEASE]);
    receiver.until(1).await;
    server.stop_immediately();
    first.end(Signal::KILL);
    server.start().await;
    receiver.answers(FINE);
    sync.run().await;
    assert_eq!(receiver.ids(), ["1"], "nothing is sent again");
    let mut stranger = PgConnection::connect(&url).await.unwrap();
    let doubts = "select key from refrain.units where status = 'parked' and sent is not null";
    let doubts: Vec<String> = sqlx::query_scalar(doubts).fetch_all(&mut stranger).await.unwrap();
    assert_eq!(doubts, ["invoice:1"]);
}
