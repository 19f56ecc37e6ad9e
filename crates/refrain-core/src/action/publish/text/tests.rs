//! The statements as text, for both databases.

use super::*;

fn texts(dialect: Dialect) -> TableStatements {
    TableStatements {
        dialect,
        table: TableName::parse("revenue_daily").unwrap(),
        stage: "refrain:stage:1".to_owned(),
        columns: ["order_date", "region", "revenue"].map(str::to_owned).to_vec(),
        derived: vec![("computed_version".to_owned(), "3".to_owned())],
        key: vec![("order_date".to_owned(), "date".to_owned()), ("region".to_owned(), "text".to_owned())],
    }
}

#[test]
fn rows_are_staged_with_the_types_of_their_table() {
    let there = texts(Dialect::Postgres);
    assert_eq!(
        there.make(),
        "create temporary table \"refrain:stage:1\" on commit drop as select \"refrain:target\".\"order_date\", \
         \"refrain:target\".\"region\", \"refrain:target\".\"revenue\" from \"revenue_daily\" as \"refrain:target\" with no data"
    );
    assert_eq!(
        there.fill("select 1, 2, 3"),
        "insert into \"refrain:stage:1\" (\"order_date\", \"region\", \"revenue\")\nselect 1, 2, 3"
    );
    let here = texts(Dialect::Sqlite);
    assert!(
        here.make().ends_with("from \"revenue_daily\" as \"refrain:target\" where false"),
        "{}",
        here.make()
    );
    assert_eq!(here.clear().len(), 3);
}

#[test]
fn a_row_for_which_owns_is_null_is_not_owned() {
    let text = texts(Dialect::Postgres).outside("order_date = $1 -- today");
    assert!(text.ends_with("where (order_date = $1 -- today\n) is not true"), "{text}");
}

#[test]
fn an_equal_row_is_left_alone() {
    let text = texts(Dialect::Sqlite).upsert(&["revenue".to_owned()]);
    assert_eq!(
        text.replace("\"refrain:target\"", "target").replace("\"refrain:row\"", "s"),
        "insert into \"revenue_daily\" as target (\"order_date\", \"region\", \"revenue\", \"computed_version\") \
         select s.\"order_date\", s.\"region\", s.\"revenue\", 3 from \"refrain:stage:1\" as s where true \
         on conflict (\"order_date\", \"region\") do update set \"revenue\" = excluded.\"revenue\", \
         \"computed_version\" = excluded.\"computed_version\" where cast(target.\"revenue\" as text) is distinct from \
         cast(excluded.\"revenue\" as text) or target.\"computed_version\" is distinct from excluded.\"computed_version\""
    );
}

#[test]
fn missing_rows_are_indexed_where_the_database_builds_no_index() {
    let index =
        "create index temp.\"refrain:stage:1:key\" on \"refrain:stage:1\" (\"order_date\", \"region\")";
    assert_eq!(texts(Dialect::Sqlite).index_missing().as_deref(), Some(index));
    assert_eq!(texts(Dialect::Postgres).index_missing(), None);
}

#[test]
fn names_cannot_end_a_statement() {
    let hostile =
        TableStatements { columns: vec!["a\"; drop table x; --".to_owned()], ..texts(Dialect::Sqlite) };
    assert!(hostile.insert().contains("\"a\"\"; drop table x; --\""), "{}", hostile.insert());
    let delta = hostile.remember("it's", "refrain_deltas", ["$1", "$2"]);
    assert!(delta.contains("'it''s'"), "{delta}");
    let there = texts(Dialect::Postgres).remember("back\\slash", "refrain.deltas", ["$1", "$2"]);
    assert!(there.contains("E'back\\\\slash'"), "whatever the server makes of one in a plain text: {there}");
}

/// Every statement that contains the user's names.
fn all(texts: &TableStatements) -> Vec<String> {
    let (columns, none) = (["revenue".to_owned()], Vec::new());
    let book = append::AppendLedger {
        units: "units",
        ledger: 1,
        target: "main.revenue_daily",
        fence: 2,
        attempt: 3,
        nonce: 4,
    };
    let places = ["$1", "$2"];
    let mut all = vec![
        texts.make(),
        texts.staged(),
        texts.outside("true"),
        texts.keyless(),
        texts.empty(&columns),
        texts.twins(),
        texts.failing("true"),
        texts.delete_owned("true"),
        texts.insert(),
        texts.upsert(&none),
        texts.upsert(&columns),
        texts.delete_missing("true"),
        texts.insert_new(&book),
        texts.record_new(&book, "clock", 1),
        texts.appended_otherwise(&book),
        texts.appended_now(&book),
        texts.adopt_content(&book),
        texts.insert_absent(),
        texts.make_change(&columns),
        texts.fill_change(&columns, "deltas", places),
        texts.nowhere(),
        texts.changes(),
        texts.insert_missing(&columns),
        texts.apply_change(&columns),
        texts.remember("revenue", "deltas", places),
        texts.forget("revenue", "deltas", places),
        texts.make_compared(),
        texts.delete_repeated(),
        texts.delete_replaced(),
        texts.lost(),
        texts.duplicated(),
        texts.extra("true"),
        texts.not_landed("$1"),
        texts.landed_again("$1"),
    ];
    all.extend(texts.make_keyed());
    all.extend(texts.make_appended());
    all.extend(texts.fill_content());
    all.extend(texts.index_compared());
    all.extend(texts.index_missing());
    all.extend(texts.derive().into_iter().chain(texts.changed(&columns, &none)));
    all.extend(texts.there_otherwise(&columns).into_iter().chain(texts.count_rows()));
    all
}

#[test]
fn every_name_that_a_statement_introduces_has_the_reserved_form() {
    let kinds = ["text", "numeric", "bigint", "integer", "date", "bit(64)", "json", "uuid", "bytea"];
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        let texts = texts(dialect);
        for text in all(&texts) {
            for (_, after) in text.match_indices(" as ").map(|(at, found)| text.split_at(at + found.len())) {
                let name = after.split([' ', ',', '\n']).next().unwrap_or_default();
                let name = name.trim_end_matches(')').trim_start_matches("pg_catalog.");
                let is_kind =
                    kinds.iter().any(|kind| name.trim_end_matches(')') == kind.trim_end_matches(')'));
                let is_theirs = texts.names().any(|column| name == quoted(column));
                let is_ours = name.starts_with("\"refrain:");
                assert!(is_ours || is_kind || is_theirs || name == "select", "{name}: {text}");
            }
            for function in
                ["count(", "min(", "sum(", "row_number(", "json_agg(", "row_to_json(", "strpos(", "sha256("]
            {
                let bare = text.match_indices(function).filter(|(at, _)| {
                    let before = text.get(..*at).unwrap_or_default();
                    !before.ends_with("pg_catalog.") && !before.ends_with(char::is_alphanumeric)
                });
                assert!(dialect == Dialect::Sqlite || bare.count() == 0, "{function} in {text}");
            }
        }
    }
}
