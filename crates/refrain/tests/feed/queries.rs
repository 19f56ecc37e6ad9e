//! The rows of a query as units.

use crate::both_databases;
use crate::support::TestDatabase;
use crate::sync::{RUN, Sync, texts};

async fn orders(database: TestDatabase) -> Sync {
    let sync = Sync::of(database).await;
    sync.shop
        .execute(sync.shop.either(
            "create table orders (id bigint, amount bigint, placed_at timestamp, day date)",
            "create table orders (id bigint, amount bigint, placed_at timestamptz, day date)",
        ))
        .await;
    sync.shop
        .execute(
            "insert into orders values (1, 10, '2020-06-09 08:00:00', '2020-06-09'),
             (2, 20, '2020-06-09 09:00:00', '2020-06-09'), (3, 30, '2020-06-10 09:00:00', '2020-06-10')",
        )
        .await;
    sync
}

const INTO: &str = "[publish]\ntable = \"invoices\"\nmode = \"merge\"\nkey = [\"id\"]\n";

both_databases! {
    async fn the_rows_of_a_query_are_units_of_its_window_beside_what_they_are_written_to(database) {
        let sync = orders(database).await;
        let query = "query = \"select id, amount as total, null as at from orders where day = :ds -- all of them\"";
        sync.job(query, "database = \"shop\"", "key = \"order:{id}\"", INTO);
        assert_eq!(sync.run().await.0, "Ran done 1");
        assert_eq!(sync.invoices().await, ["1 10", "2 20"]);
        sync.shop.execute("update orders set amount = 21 where id = 2").await;
        assert_eq!(sync.again().await.0, "Ran done 2");
        assert_eq!(sync.counts().await, [[2, 0, 0, 0], [1, 0, 1, 0]]);
        assert_eq!((sync.invoices().await, sync.writes().await), (vec!["1 10".to_owned(), "2 21".to_owned()], texts([1, 2, 2])));
    }

    async fn m6_a_query_is_asked_from_the_watermark_on(database) {
        let sync = orders(database).await;
        let query = "query = \"select id, amount as total, placed_at as at from orders where placed_at >= :watermark\"";
        let more = format!("[watermark]\nfield = \"at\"\noverlap = \"1m\"\n{INTO}");
        sync.job(query, "database = \"shop\"", "", &more);
        assert_eq!(sync.run().await.0, "Ran done 1");
        assert_eq!(sync.position().await, ["2020-06-10T09:00:00Z"]);
        sync.shop.execute("insert into orders values (4, 40, '2020-06-10 08:59:30', '2020-06-10')").await;
        sync.ask(&["run", "sync@2020-06-20"]).await;
        assert_eq!(sync.writes().await, texts(1..=4));
    }

    async fn a_query_that_cannot_be_asked_says_so_and_writes_nothing(database) {
        for (query, said) in [
            ("select id, amount as total from nowhere", "nowhere"),
            ("select id, id, amount as total from orders", "two columns of the query are called `id`"),
        ] {
            let sync = orders(TestDatabase::like(&database).await).await;
            let top = "database = \"shop\"\nretry = { attempts = 1 }";
            sync.job(&format!("query = \"{query}\""), top, "key = \"{id}\"", INTO);
            let (became, told) = sync.ask(&["run", RUN]).await;
            assert_eq!(became, "Ran failed 1", "{told}");
            assert!(told.contains(said), "{told}");
            assert_eq!(sync.writes().await, [""; 0]);
        }
    }

    async fn a_query_that_breaks_off_in_the_middle_is_not_taken_for_all_of_its_rows(database) {
        let sync = orders(database).await;
        let overflow = sync.shop.either("abs(-9223372036854775807 - 1)", "9223372036854775807 + 1");
        let query = format!("select id, case when id = 3 then {overflow} else amount end as total from orders order by id");
        let top = "database = \"shop\"\nretry = { attempts = 1 }";
        sync.job(&format!("query = \"{query}\""), top, "key = \"{id}\"", INTO);
        let (became, told) = sync.ask(&["run", RUN]).await;
        assert_eq!(became, "Ran failed 1", "{told}");
    }

    async fn more_rows_than_one_part_holds_come_through(database) {
        let sync = orders(database).await;
        let many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500) select i as id, i as total from n";
        sync.job(&format!("query = \"{many}\""), "database = \"shop\"", "", INTO);
        assert_eq!(sync.run().await.0, "Ran done 1");
        assert_eq!(sync.counts().await, [[2_500, 0, 0, 0]]);
        assert_eq!(sync.invoices().await.len(), 2_500);
    }
}
