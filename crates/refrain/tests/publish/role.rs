//! A role on PostgreSQL that is called `refrain`, as the role of these tests is: by the usual search path it finds our tables
//! before its own. Jobs of its project read and write its own.

use refrain::Ask;

use crate::shop::Shop;
use crate::support::TestDatabase;
use crate::warehouse::{daily, well};

#[tokio::test]
async fn tables_that_are_called_like_ours_are_the_jobs_own() {
    let database = TestDatabase::postgres().await;
    assert_eq!(database.texts("select cast(current_user as text)").await, ["refrain"]);
    let shop = Shop::of(database);
    shop.execute(
        "create table workers (name text); insert into workers values ('north');
         create table units (ds date, n integer); insert into units values ('2026-06-09', 7);
         create table runs (ds date, region text, n integer);
         create table jobs (ds date, n integer)",
    )
    .await;
    daily(
        &shop,
        "copied",
        "scopes = \"select name from workers\"
         query = \"select :ds as ds, :scope as region, n from units where ds = :ds\"
         [publish]\ntable = \"runs\"\nmode = \"overwrite\"\nowns = \"ds = :ds and region = :scope\"",
    );
    daily(&shop, "added", "sql = \"insert into jobs select ds, n from units where ds = :ds\"");
    for _ in 0..2 {
        well(&shop, "copied@2026-06-09", Ask::Again).await;
        well(&shop, "copied@2026-06-09/north", Ask::Again).await;
        well(&shop, "added@2026-06-09", Ask::Again).await;
    }
    let rows = "select ds || ' ' || region || ' ' || n from public.runs union all select ds || ' ' || n from public.jobs";
    assert_eq!(shop.rows(rows).await, ["2026-06-09 north 7", "2026-06-09 7"]);
}
