//! What cannot be published: one clear word, and nothing half-written.

use refrain::Ask;

use crate::both_databases;
use crate::support::TestDatabase;
use crate::warehouse::{daily, fails, warehouse, well, window, written};

const OVERWRITE: &str = "mode = \"overwrite\"\nowns = \"day = :ds\"";

both_databases! {
    async fn rows_outside_of_what_the_window_owns_are_refused_and_nothing_is_touched(database) {
        let shop = warehouse(database).await;
        well(&shop, &window("overwrite"), Ask::Once).await;
        let before = written(&shop, "overwrite").await;
        for (query, count) in [
            ("select day, region, amount from orders", "1 of 5"),
            ("select day, region, amount from orders where day = :ds union all select null, 'x', 1", "1 of 5"),
        ] {
            daily(&shop, "overwrite", &format!("query = \"{query}\"\n[publish]\ntable = \"revenue\"\n{OVERWRITE}"));
            let said = fails(&shop, &window("overwrite")).await;
            assert!(said.contains(&format!("{count} rows lie outside of `owns` (day = :ds)")), "{said}");
            assert!(said.contains("nothing was published"), "{said}");
            assert_eq!(written(&shop, "overwrite").await, before);
        }
    }

    async fn a_check_that_does_not_hold_publishes_nothing(database) {
        let shop = warehouse(database).await;
        let query = "query = \"select day, region, amount from orders where day = :ds\"";
        for (check, holds) in [("count(*) > 3", true), ("count(*) > 4", false), ("amount > 7", false), ("sum(amount) = 44", true), ("day = :ds", true), ("null = 1", false)] {
            daily(&shop, "overwrite", &format!("{query}\n[publish]\ntable = \"revenue\"\n{OVERWRITE}\ncheck = [\"{check}\"]"));
            shop.execute("delete from revenue").await;
            if holds {
                well(&shop, &window("overwrite"), Ask::Again).await;
            } else {
                let said = fails(&shop, &window("overwrite")).await;
                assert!(said.contains(&format!("`check` does not hold: {check}")), "{said}");
            }
            assert_eq!(written(&shop, "overwrite").await.is_empty(), !holds, "{check}");
        }
    }

    async fn m30_a_key_that_is_not_unique_in_the_table_is_reported_with_what_to_add(database) {
        let shop = warehouse(database).await;
        shop.execute("create table plain (region text, amount integer)").await;
        for mode in ["mode = \"merge\"\nkey = [\"region\"]", "mode = \"apply-delta\"\nkey = [\"region\"]\ncolumns = [\"amount\"]"] {
            daily(&shop, "plain", &format!("query = \"select 'eu' as region, 1 as amount\"\n[publish]\ntable = \"plain\"\n{mode}"));
            let said = fails(&shop, "plain@2026-06-09").await;
            assert!(said.contains("needs a unique constraint on `plain` (region)"), "{said}");
            let (_, advice) = said.split_once("add it: ").unwrap();
            assert_eq!(advice, "create unique index \"plain_region\" on \"plain\" (\"region\")");
        }
        shop.execute("insert into plain values ('eu', 5); create unique index \"plain_region\" on \"plain\" (\"region\")").await;
        well(&shop, "plain@2026-06-09", Ask::Again).await;
        let partial = "drop index plain_region; create unique index partly on plain (region) where amount > 0";
        shop.execute(partial).await;
        assert!(fails(&shop, "plain@2026-06-09").await.contains("unique constraint"), "one of some rows is none");
    }

    async fn what_does_not_fit_the_table_is_said_with_what_to_do(database) {
        let shop = warehouse(database).await;
        shop.remove("overwrite");
        let merge = "table = \"regions\"\nmode = \"merge\"\nkey = [\"day\", \"region\"]";
        for (query, publish, expected) in [
            ("select :ds as day, 'eu' as regoin", "table = \"revenue\"\nmode = \"overwrite\"\nowns = \"day = :ds\"", "did you mean `region`?"),
            ("select :ds as day, 'eu' as region", "table = \"revenues\"\nmode = \"overwrite\"\nowns = \"day = :ds\"", "there is no table `revenues` in the database `shop`"),
            ("select :ds as day, 1 as amount, 2 as amount", "table = \"revenue\"\nmode = \"overwrite\"\nowns = \"day = :ds\"", "two columns of the result are called `amount`"),
            ("select :ds as day, 1 as amount", merge, "`key` names the column `region`, which the result lacks"),
            ("select :ds as day, null as region, 1 as amount", merge, "1 of 1 rows have no whole key (day, region)"),
            ("select :ds as day, 'eu' as region, 1 as amount union all select :ds, 'eu', 2", merge, "1 keys (day, region) stand for more than one of 2 rows"),
            ("select day, region, amount from nowhere", merge, "nowhere"),
            ("select day, region, sum(amount) as amount from orders where", merge, "the query: "),
            ("select 'eu' as region, 1 as amount, 'x' as note", "table = \"stock\"\nmode = \"apply-delta\"\nkey = [\"region\"]\ncolumns = [\"amount\"]", "neither in `key` nor in `columns`"),
            ("select 'mars' as region, 1 as amount", "table = \"stock\"\nmode = \"apply-delta\"\nkey = [\"region\"]\ncolumns = [\"amount\"]", "1 keys (region) are not in `stock`"),
            ("select 'eu' as region, cast(null as integer) as amount", "table = \"stock\"\nmode = \"apply-delta\"\nkey = [\"region\"]\ncolumns = [\"amount\"]", "1 of 1 rows hold no number (amount)"),
            ("select 'eu' as region, 1 as amount", "table = \"raw_events\"\nmode = \"land\"", "make it, with the columns region, amount, source, content_hash, occurrence"),
        ] {
            daily(&shop, "odd", &format!("query = \"{query}\"\n[publish]\n{publish}"));
            let said = fails(&shop, "odd@2026-06-09").await;
            assert!(said.contains(expected), "{query}: {said}");
        }
        for mode in ["overwrite", "merge", "append", "land"] {
            assert!(written(&shop, mode).await.is_empty(), "{mode}");
        }
        assert_eq!(written(&shop, "delta").await, ["asia 1000 c", "eu 1000 a", "us 1000 b"]);
    }

    async fn a_constraint_of_the_table_has_the_last_word_and_the_old_rows_stay(database) {
        let shop = warehouse(database).await;
        shop.execute("create table strict_regions (day date not null, region text not null check (region <> 'us'), amount integer)").await;
        shop.execute("insert into strict_regions values ('2026-06-09', 'old', 1)").await;
        daily(&shop, "strict", &format!("query = \"select day, region, amount from orders where day = :ds\"\n[publish]\ntable = \"strict_regions\"\n{OVERWRITE}"));
        let said = fails(&shop, "strict@2026-06-09").await;
        assert!(said.contains("`strict_regions`: ") && said.to_lowercase().contains("check constraint"), "{said}");
        let rows = "select region from strict_regions";
        assert_eq!(shop.rows(rows).await, ["old"], "no hole is left where the rows were");
    }
}

#[tokio::test]
async fn a_server_says_of_which_type_a_column_is_and_who_may_write() {
    let shop = warehouse(TestDatabase::postgres().await).await;
    shop.remove("overwrite");
    daily(
        &shop,
        "odd",
        &format!(
            "query = \"select 'x' as day, 'eu' as region\"\n[publish]\ntable = \"revenue\"\n{OVERWRITE}"
        ),
    );
    let said = fails(&shop, "odd@2026-06-09").await;
    assert!(said.contains("invalid input syntax for type date"), "{said}");
    daily(
        &shop,
        "odd",
        &format!("query = \"select cast('x' as text) as day\"\n[publish]\ntable = \"revenue\"\n{OVERWRITE}"),
    );
    let said = fails(&shop, "odd@2026-06-09").await;
    assert!(said.contains("column \"day\" is of type date but expression is of type text"), "{said}");
}

#[tokio::test]
async fn a_destination_without_permission_is_named_and_nothing_is_written() {
    let shop = warehouse(TestDatabase::postgres().await).await;
    shop.open().await.close().await;
    let url = shop.database.url();
    let database = url.rsplit('/').next().unwrap();
    let name = format!("limited_{database}");
    shop.execute(&format!(
        "create role {name} login password 'x'; grant create on database {database} to {name};
         grant all on schema refrain to {name}; grant usage on schema public to {name}; grant all on all tables in schema refrain to {name};
         grant all on all sequences in schema refrain to {name}; grant select on orders, revenue to {name}"
    ))
    .await;
    let (scheme, rest) = url.split_once("://").unwrap();
    let (_, place) = rest.split_once('@').unwrap();
    shop.settings(&url, &format!("shop = \"{scheme}://{name}:x@{place}\""));
    let said = fails(&shop, &window("overwrite")).await;
    shop.execute(&format!("drop owned by {name}; drop role {name}")).await;
    assert!(said.contains("permission denied for table revenue"), "{said}");
    assert!(written(&shop, "overwrite").await.is_empty());
}
