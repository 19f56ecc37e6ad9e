//! A window and its scopes, run by one command: all reports, and the code of the worst.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, Executor as _, SqliteConnection};

use crate::support::Desk;
use crate::support::transcript::{matches, transcript};

#[tokio::test]
async fn a_window_with_scopes_ends_like_its_worst_scope() {
    let desk = Desk::shop().await;
    let lines = [
        "run digest@2001-06-01",
        "run digest@2001-06-01",
        "run digest@2001-06-01/acme --again",
        "--json run digest --window 2001-06-01 --scope acme",
        "run digest@2001-06-01/unknown",
        "run digest --scope acme",
        "run digest@2001-06-01 --scope acme",
        "run digest --window 2001-06-01 --key 7",
        "status digest",
        "--json run digest@2001-06-02",
    ];
    matches("transcripts/scopes.txt", &transcript(&desk, &lines));
}

#[tokio::test]
async fn scopes_before_one_that_cannot_be_run_are_reported() {
    let desk = Desk::shop().await;
    assert_eq!(desk.refrain("run digest@2001-06-01").code, Some(1));
    let options = SqliteConnectOptions::new().filename(desk.file(".refrain/refrain.db"));
    let mut store = SqliteConnection::connect_with(&options).await.unwrap();
    // Without its payload it cannot be tried again.
    store.execute("update refrain_runs set payload = '' where key like '%bolt'").await.unwrap();
    store.close().await.unwrap();
    let lines = ["run digest@2001-06-01 --again", "run digest@2001-06-01", "--json run digest@2001-06-01"];
    matches("transcripts/broken_scope.txt", &transcript(&desk, &lines));
}
