//! Values are bound with the types of the columns that they are compared with and written to.

use refrain::Ask;
use serde_json::json;

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

#[both_databases]
async fn a_window_binds_a_date_and_two_timestamps(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute(shop.either(
        "create table orders (id integer primary key, day date, at timestamp);
             create table seen (day date, from_at timestamp, until_at timestamp, version integer, \
             job text, orders integer)",
        "create table orders (id bigint primary key, day date, at timestamptz);
             create table seen (day date, from_at timestamptz, until_at timestamp, version integer, \
             job varchar(40), orders integer)",
    ))
    .await;
    // A day in Berlin begins at 22:00 in UTC; the last one lies in the next.
    shop.execute(
        "insert into orders values (1, '2020-06-09', '2020-06-08 22:00:00'), \
         (2, '2020-06-09', '2020-06-09 21:59:59'),
             (3, '2020-06-09', '2020-06-08 21:59:59'), (4, '2020-06-10', '2020-06-09 22:00:00')",
    )
    .await;
    let sql = "insert into seen select :ds, :window_start, :window_end, :version, :job, count(*) from orders
            where day = :ds and at >= :window_start and at < :window_end";
    shop.daily("count", sql, "timezone = \"Europe/Berlin\"\nversion = 3");
    assert!(shop.run("count@2020-06-09", Ask::Once).await.is_done());
    let seen = shop.rows(
        "select cast(day as text) || ' ' || cast(from_at as text) || ' ' || cast(until_at as text) || ' '
             || cast(version as text) || ' ' || job || ' ' || cast(orders as text) from seen",
    );
    let expected = shop.either(
        "2020-06-09 2020-06-08 22:00:00 2020-06-09 22:00:00 3 count 2",
        "2020-06-09 2020-06-08 22:00:00+00 2020-06-09 22:00:00 3 count 2",
    );
    assert_eq!(seen.await, [expected]);
}

#[both_databases]
async fn a_scope_has_the_type_of_its_column(database: TestDatabase) {
    let shop = TestProject::of(database);
    let kinds = [
        ("number", shop.either("integer", "bigint"), ["7", "40"]),
        ("small", shop.either("int", "smallint"), ["1", "2"]),
        ("name", "text", ["acme", "o'brien; drop table x"]),
        ("code", "varchar(9)", ["a", "b"]),
        (
            "id",
            shop.either("text", "uuid"),
            ["00000000-0000-4000-8000-000000000001", "ffffffff-0000-4000-8000-000000000002"],
        ),
        ("price", shop.either("numeric", "numeric(9,2)"), ["1.25", "2.5"]),
    ];
    for (name, kind, [one, other]) in kinds {
        shop.execute(&format!(
            "create table {name}_orgs (id {kind} primary key); create table {name}_orders (org {kind}, \
             amount integer);
                 create table {name}_totals (org {kind}, day date, total integer, primary key (org, \
                 day));"
        ))
        .await;
        let (one, other) = (one.replace('\'', "''"), other.replace('\'', "''"));
        shop.execute(&format!("insert into {name}_orgs values ('{one}'), ('{other}')")).await;
        shop.execute(&format!("insert into {name}_orders values ('{one}', 1), ('{one}', 2), ('{other}', 5)"))
            .await;
        let sql = format!(
            "insert into {name}_totals select :scope, :ds, sum(amount) from {name}_orders where org = :scope"
        );
        shop.daily(name, &sql, &format!("scopes = \"select id from {name}_orgs\""));
    }
    let refrain = shop.open().await;
    for (name, ..) in kinds {
        refrain.run(&format!("{name}@2020-06-09"), Ask::Once).await.unwrap();
    }
    refrain.tick_at("2020-06-02T00:01:00Z".parse().unwrap()).await.unwrap();
    for (name, _, [one, other]) in kinds {
        let of_day = |day: &str| {
            format!(
                "select cast(org as text) || ' ' || cast(total as text) \
                 from {name}_totals where day = '{day}' order by total"
            )
        };
        for day in ["2020-06-01", "2020-06-09"] {
            let totals = shop.rows(&of_day(day)).await;
            let other = if name == "price" && !shop.database.is_sqlite() { "2.50" } else { other };
            assert_eq!(totals, [format!("{one} 3"), format!("{other} 5")], "{name} {day}");
        }
    }
}

#[both_databases]
async fn a_payload_keeps_the_types_of_its_json(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute(shop.either(
        "create table users (id integer, ref text, name text, rate real, active boolean, since date, \
         tags text)",
        "create table users (id bigint, ref uuid, name text, rate numeric(4,2), \
         active boolean, since date, tags jsonb)",
    ))
    .await;
    let sql =
        "insert into users values (:payload.id, cast(:payload.ref as KEY), :payload.name, :payload.rate,
            :payload.active, cast(:payload.since as DAY), :payload.tags)";
    let (key, day) = if shop.database.is_sqlite() { ("text", "text") } else { ("uuid", "date") };
    let sql = sql.replace("KEY", key).replace("DAY", day);
    shop.job("welcome", &format!("queue = true\nsql = \"\"\"{sql}\"\"\"\n"));
    let payload = json!({
        "id": 9_007_199_254_740_993_i64, "ref": "00000000-0000-4000-8000-000000000001", "name": "Ada'); drop table users; --",
        "rate": 0.5, "active": true, "since": "2020-06-09", "tags": ["a", 1],
    });
    let refrain = shop.open().await;
    refrain.enqueue_json("welcome", "42", Some(&payload.to_string())).await.unwrap();
    refrain.tick().await.unwrap();
    let users = shop.rows(
        "select cast(id as text) || ' ' || cast(ref as text) || ' ' || name || ' ' || cast(rate as \
         text) || ' '
             || cast(active as text) || ' ' || cast(since as text) || ' ' || cast(tags as text) \
             from users",
    );
    let expected = shop.either(
        "9007199254740993 00000000-0000-4000-8000-000000000001 Ada'); drop table users; \
         -- 0.5 1 2020-06-09 [\"a\",1]",
        "9007199254740993 00000000-0000-4000-8000-000000000001 Ada'); drop table users; \
         -- 0.50 true 2020-06-09 [\"a\", 1]",
    );
    assert_eq!(users.await, [expected]);
}

#[tokio::test]
async fn timestamps_are_bound_in_the_format_of_the_file() {
    for (form, first, last, next) in [
        ("text", "'2020-06-09 00:00:00'", "'2020-06-09 23:59:59'", "'2020-06-10 00:00:00'"),
        ("iso", "'2020-06-09T00:00:00Z'", "'2020-06-09T23:59:59Z'", "'2020-06-10T00:00:00Z'"),
        ("unix", "1591660800", "1591747199", "1591747200"),
        ("unix-ms", "1591660800000", "1591747199999", "1591747200000"),
    ] {
        let shop = TestProject::of(TestDatabase::sqlite().await);
        let url = shop.database.url();
        shop.settings("sqlite:refrain.db", &format!("shop = {{ url = \"{url}\", time = \"{form}\" }}"));
        shop.execute("create table orders (at); create table counted (orders integer, from_at, until_at)")
            .await;
        shop.execute(&format!("insert into orders values ({first}), ({last}), ({next})")).await;
        let sql = "insert into counted select count(*), :window_start, :window_end from orders
            where at >= :window_start and at < :window_end";
        shop.daily("count", sql, "");
        assert!(shop.run("count@2020-06-09", Ask::Once).await.is_done());
        let counted = shop.rows("select orders || ' ' || from_at || ' ' || until_at from counted").await;
        assert_eq!(
            counted,
            [format!("2 {} {}", first.trim_matches('\''), next.trim_matches('\''))],
            "{form}"
        );
    }
}

/// Only the server knows user-defined types, and an unusual name needs quotes and a schema.
#[tokio::test]
async fn a_scope_can_have_a_user_defined_type() {
    let shop = TestProject::of(TestDatabase::postgres().await);
    shop.execute(
        "create schema odd; create type odd.\"Region\" as enum ('north', 'south');
         create table regions (name odd.\"Region\"); insert into regions values ('north');
         create table totals (region odd.\"Region\", day date)",
    )
    .await;
    shop.daily(
        "total",
        "insert into totals select name, :ds from regions where name = :scope",
        "scopes = \"select name from regions\"",
    );
    let refrain = shop.open().await;
    refrain.tick_at("2020-06-02T00:01:00Z".parse().unwrap()).await.unwrap();
    assert_eq!(shop.rows("select region::text || ' ' || day::text from totals").await, ["north 2020-06-01"]);
}
