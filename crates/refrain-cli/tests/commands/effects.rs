//! What commands say about effects: one that has arrived in the store is recorded, and effects are
//! not sent yet.

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

use crate::support::Desk;

#[tokio::test]
async fn status_names_effects_that_are_recorded_and_not_sent() {
    let desk = Desk::of(&[
        (
            "refrain.toml",
            r#"
                [project]
                name = "shop"
                [databases]
                shop = "sqlite:shop.db"
            "#,
        ),
        ("jobs/book.toml", "queue = true\ndatabase = \"shop\"\nsql = \"delete from totals where false\"\n"),
    ]);
    let file = SqliteConnectOptions::new().filename(desk.file("shop.db")).create_if_missing(true);
    SqliteConnection::connect_with(&file).await.unwrap().close().await.unwrap();
    desk.refrain("migrate").succeeds(&[]);
    for (count, output) in
        [(0, ""), (1, "1 effect is pending: it is"), (2, "2 effects are pending: they are")]
    {
        if count > 0 {
            let mut shop = SqliteConnection::connect_with(&file).await.unwrap();
            let intent = "insert into refrain_intents (project, kind, name, key, version) \
                 values ('shop', 'effect', 'mail', $1, 1)";
            sqlx::query(intent).bind(format!("order:{count}")).execute(&mut shop).await.unwrap();
            shop.close().await.unwrap();
        }
        desk.refrain("tick");
        let status = desk.refrain("status");
        assert_eq!(status.code, Some(0), "{status:?}");
        assert_eq!(status.stderr.contains("pending: "), count > 0, "{status:?}");
        assert!(status.stderr.contains(output), "{status:?}");
    }
}
