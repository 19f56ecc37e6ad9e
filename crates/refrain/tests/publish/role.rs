//! A PostgreSQL role called `refrain`, as in these tests: its default search path finds the tables
//! of Refrain before those of its own. Jobs of its project read and write their own tables.

use refrain::Ask;

use crate::warehouse::{daily, well};
use refrain_harness::TestDatabase;
use refrain_harness::project::TestProject;

#[tokio::test]
async fn a_job_can_use_tables_named_like_those_of_the_store() {
    let database = TestDatabase::postgres().await;
    assert_eq!(database.texts("select cast(current_user as text)").await, ["refrain"]);
    let shop = TestProject::of(database);
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
        r#"
            scopes = "select name from workers"
            query = "select :ds as ds, :scope as region, n from units where ds = :ds"
            [publish]
            table = "runs"
            mode = "overwrite"
            owns = "ds = :ds and region = :scope"
        "#,
    );
    daily(&shop, "added", "sql = \"insert into jobs select ds, n from units where ds = :ds\"");
    for _ in 0..2 {
        well(&shop, "copied@2026-06-09", Ask::Again).await;
        well(&shop, "copied@2026-06-09/north", Ask::Again).await;
        well(&shop, "added@2026-06-09", Ask::Again).await;
    }
    let rows = "select ds || ' ' || region || ' ' || n from public.runs union all select ds || ' ' || n \
         from public.jobs";
    assert_eq!(shop.rows(rows).await, ["2026-06-09 north 7", "2026-06-09 7"]);
}
