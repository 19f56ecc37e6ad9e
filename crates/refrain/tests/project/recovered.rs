//! Killed while an operator recovers a store or adopts a database: repeating the command completes it, and the store
//! never assumes that calls of another store were not made.

use std::os::unix::process::ExitStatusExt;

use rustix::process::Signal;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection, SqliteConnection};

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

/// A shop in which a job has run once. Its store is a file, wherever the database of the shop is.
async fn served(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.settings("sqlite:refrain.db", &format!("shop = \"{}\"", shop.database.url()));
    let pays = "queue = true\ndatabase = \"shop\"\nsql = \"insert into paid values ('it')\"\n";
    shop.job("payment", pays);
    shop.execute("create table paid (what text)").await;
    shop.open().await.close().await;
    assert!(shop.done(&["run", "payment#1"]).await.starts_with("did Ran done 1"));
    shop
}

/// The same shop after the store was lost, with a new store in its place.
async fn lost(database: TestDatabase) -> TestProject {
    let shop = served(database).await;
    for file in ["refrain.db", "refrain.db-wal", "refrain.db-shm"] {
        let _ = std::fs::remove_file(shop.root().join(file));
    }
    shop.prepare().await;
    shop
}

async fn killed(shop: &TestProject, arguments: &[&str], place: &str) {
    let failpoints = format!("{place}=return(kill)");
    let killed = shop.process(arguments, &[("FAILPOINTS", &failpoints)]).finish().await;
    assert_eq!(killed.status.signal(), Some(Signal::KILL.as_raw()), "{place}");
    assert_eq!(shop.lines("struck"), [place]);
}

/// Whether the store knows that calls may have been made that it has no record of.
async fn forgets(shop: &TestProject) -> bool {
    let store = SqliteConnectOptions::new().filename(shop.root().join("refrain.db"));
    let mut store = SqliteConnection::connect_with(&store).await.unwrap();
    let forgets: bool = sqlx::query_scalar("select forgets_before is not null from refrain_store")
        .fetch_one(&mut store)
        .await
        .unwrap();
    store.close().await.unwrap();
    forgets
}

/// The decisions about the store, the oldest first.
async fn decided(shop: &TestProject) -> Vec<String> {
    let refrain = shop.open().await;
    let decisions = refrain.decisions(100).await.unwrap();
    refrain.close().await;
    let decisions = decisions.into_iter().rev().filter(|one| one.verb == "recover");
    decisions.map(|one| one.detail.unwrap_or_default()).collect()
}

#[both_databases]
async fn f23_an_adoption_cut_off_by_a_kill_can_be_repeated(database: TestDatabase) {
    for place in ["audit", "state", "adopt"] {
        for when in ["before-commit", "after-commit"] {
            let (place, shop) = (format!("{place}.{when}"), lost(TestDatabase::like(&database).await).await);
            killed(&shop, &["adopt"], &place).await;
            let adopted = shop.done(&["adopt"]).await;
            assert_eq!(
                adopted,
                if place == "adopt.after-commit" { "adopted 0\n" } else { "adopted 1\n" },
                "{place}"
            );
            assert!(forgets(&shop).await, "{place}: it does not know what the lost store has done");
            // Each command records its decision before it acts on it, and the second one finds nothing after the last commit.
            let once = ["audit.before-commit", "adopt.after-commit"].contains(&place.as_str());
            assert_eq!(decided(&shop).await.len(), if once { 1 } else { 2 }, "{place}");
            assert!(shop.done(&["run", "payment#2"]).await.starts_with("did Ran done"), "{place}");
        }
    }
}

#[both_databases]
async fn f23_a_recovery_cut_off_by_a_kill_can_be_repeated(database: TestDatabase) {
    for when in ["before-commit", "after-commit"] {
        let shop = served(TestDatabase::like(&database).await).await;
        killed(&shop, &["state", "restored"], &format!("state.{when}")).await;
        assert_eq!(forgets(&shop).await, when == "after-commit");
        assert_eq!(decided(&shop).await.len(), usize::from(when == "after-commit"), "both or neither");
        shop.done(&["state", "restored"]).await;
        assert!(forgets(&shop).await);

        std::fs::remove_file(shop.root().join("struck")).unwrap();
        killed(&shop, &["state", "settled"], &format!("remember.{when}")).await;
        assert_eq!(forgets(&shop).await, when == "before-commit");
        shop.done(&["state", "settled"]).await;
        assert!(!forgets(&shop).await);
        assert_eq!(decided(&shop).await.last().map(String::as_str), Some("settled"));
        assert!(shop.done(&["run", "payment#2"]).await.starts_with("did Ran done"), "{when}");
    }
}

#[both_databases]
async fn f4_a_recovery_with_a_lost_reply_holds(database: TestDatabase) {
    let shop = lost(database).await;
    let lost = |place: &str| format!("{place}.reply=1*return(lost)");
    let places = [("adopt", "state"), ("adopt", "adopt"), ("restored", "state"), ("settled", "remember")];
    for (command, place) in places {
        let arguments = if command == "adopt" { vec!["adopt"] } else { vec!["state", command] };
        shop.done_with(&arguments, &[("FAILPOINTS", &lost(place))]).await;
        assert_eq!(forgets(&shop).await, command != "settled", "{command} {place}");
    }
    assert_eq!(shop.lines("struck"), ["state.reply", "state.reply", "remember.reply"]);
    assert!(shop.done(&["run", "payment#2"]).await.starts_with("did Ran done"));
    assert_eq!(shop.rows("select what from paid").await, ["it", "it"]);
}

#[both_databases]
async fn f23_a_store_killed_while_noting_its_doubt_still_runs_nothing(database: TestDatabase) {
    for when in ["before-commit", "after-commit"] {
        let shop = served(TestDatabase::like(&database).await).await;
        let fence = "insert into refrain_fences (project, job, run, attempt, nonce) \
             values ('shop', 'payment', '2', 7, 1)";
        shop.database.store(fence).await;
        killed(&shop, &["run", "payment#2"], &format!("doubt.{when}")).await;
        let again = shop.process(&["run", "payment#2"], &[]).finish().await;
        assert!(!again.status.success(), "{when}");
        assert!(String::from_utf8_lossy(&again.stderr).contains("recover"), "{again:?}");
        assert_eq!(shop.rows("select what from paid").await, ["it"], "{when}");
    }
}
