//! One run per window and scope, for the scopes that the query gave to the run of the window.

use refrain::core::state::RunNode;
use refrain::{Ask, Refrain};

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;
use refrain_harness::work::{is_sound, june, run_states};

/// Organisations with the day on which each begins; a job that writes a row for each, from that day on.
async fn shop(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.execute(
        "create table orgs (id text, since date); create table digests (org text, day date, \
         primary key (org, day));
         insert into orgs values ('acme', '2020-06-01'), ('beta', '2020-06-02')",
    )
    .await;
    scoped(&shop, "select id from orgs where since <= :ds");
    shop
}

fn scoped(shop: &TestProject, query: &str) {
    let more = format!("retry = {{ attempts = 1 }}\nscopes = \"{query}\"");
    shop.daily("digest", "insert into digests values (:scope, :ds)", &more);
}

async fn written(shop: &TestProject) -> Vec<String> {
    shop.rows("select cast(day as text) || ' ' || org from digests order by day, org").await
}

/// Requests a window whose scopes query fails. Returns the message.
async fn refused(refrain: &Refrain) -> String {
    let run = refrain.run("digest@2020-06-09", Ask::Once).await.unwrap().run;
    assert_eq!(run.standing.node(), RunNode::Failed);
    run.message.unwrap()
}

#[both_databases]
async fn a_window_has_a_run_per_scope_that_existed_when_it_opened(database: TestDatabase) {
    let shop = shop(database).await;
    let refrain = shop.open().await;
    refrain.tick_at(june("03T00:01")).await.unwrap();
    assert_eq!(written(&shop).await, ["2020-06-01 acme", "2020-06-02 acme", "2020-06-02 beta"]);
    let of_both =
        ["06-01 done 1", "06-01/acme done 1", "06-02 done 1", "06-02/acme done 1", "06-02/beta done 1"];
    assert_eq!(run_states(&refrain, "digest").await, of_both);

    shop.execute("insert into orgs values ('late', '2020-06-01')").await;
    refrain.run("digest@2020-06-01", Ask::Again).await.unwrap();
    refrain.tick_at(june("03T00:02")).await.unwrap();
    assert_eq!(written(&shop).await.len(), 3, "the set of the window is frozen");
    let error = refrain.run("digest@2020-06-01/late", Ask::Once).await.unwrap_err().to_string();
    assert!(error.contains("a window has only the scopes that its own run has found"), "{error}");
    refrain.tick_at(june("04T00:01")).await.unwrap();
    assert_eq!(written(&shop).await[3..], ["2020-06-03 acme", "2020-06-03 beta", "2020-06-03 late"]);
    is_sound(&refrain).await;
}

#[both_databases]
async fn a_null_or_empty_or_two_column_scope_is_refused(database: TestDatabase) {
    let shop = shop(database).await;
    shop.execute("insert into orgs values (null, '2020-06-05'), ('', '2020-06-06')").await;
    for (query, expected) in [
        ("select id from orgs where since <= '2020-06-05'", "a scope is null\n  exclude such rows"),
        ("select id from orgs where since = '2020-06-06'", "a scope is empty\n  exclude such rows"),
        ("select id, since from orgs", "the query `scopes` returns 2 columns\n  a scope is one value"),
        ("select id from nowhere", "the query `scopes` failed: "),
        ("select 'two' || x'0a' || 'lines'", "scope"),
    ] {
        let query =
            if shop.database.is_sqlite() { query.to_owned() } else { query.replace("x'0a'", "chr(10)") };
        scoped(&shop, &query);
        let refrain = shop.open().await;
        let message = refused(&refrain).await;
        assert!(message.contains(expected), "{query}: {message}");
        assert_eq!(written(&shop).await, [""; 0]);
        refrain.close().await;
    }
    scoped(&shop, "select id from orgs where since <= '2020-06-02'");
    let refrain = shop.open().await;
    assert!(refrain.run("digest@2020-06-09", Ask::Once).await.unwrap().is_done(), "mended, it is expanded");
    assert_eq!(written(&shop).await, ["2020-06-09 acme", "2020-06-09 beta"]);
}
