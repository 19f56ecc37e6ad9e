//! What the statements look like, for both databases.

use super::*;

fn texts(dialect: Dialect) -> Texts {
    Texts {
        dialect,
        table: TableName::parse("revenue_daily").unwrap(),
        stage: "refrain_stage_1".to_owned(),
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
        "create temporary table \"refrain_stage_1\" on commit drop as select t.\"order_date\", t.\"region\", \
         t.\"revenue\" from \"revenue_daily\" as t with no data"
    );
    assert_eq!(
        there.fill("select 1, 2, 3"),
        "insert into \"refrain_stage_1\" (\"order_date\", \"region\", \"revenue\")\nselect 1, 2, 3"
    );
    let here = texts(Dialect::Sqlite);
    assert!(here.make().ends_with("from \"revenue_daily\" as t where false"), "{}", here.make());
    assert_eq!(here.clear().len(), 3);
}

#[test]
fn a_row_of_which_nobody_can_say_whether_it_is_owned_is_not() {
    let text = texts(Dialect::Postgres).outside("order_date = $1 -- today");
    assert!(text.ends_with("where (order_date = $1 -- today\n) is not true"), "{text}");
}

#[test]
fn a_row_that_says_the_same_is_left_alone() {
    let text = texts(Dialect::Sqlite).upsert(&["revenue".to_owned()]);
    assert_eq!(
        text,
        "insert into \"revenue_daily\" as target (\"order_date\", \"region\", \"revenue\", \"computed_version\") \
         select s.\"order_date\", s.\"region\", s.\"revenue\", 3 from \"refrain_stage_1\" as s where true \
         on conflict (\"order_date\", \"region\") do update set \"revenue\" = excluded.\"revenue\", \
         \"computed_version\" = excluded.\"computed_version\" where cast(target.\"revenue\" as text) is distinct from \
         cast(excluded.\"revenue\" as text) or target.\"computed_version\" is distinct from excluded.\"computed_version\""
    );
}

#[test]
fn names_cannot_end_a_statement() {
    let hostile = Texts { columns: vec!["a\"; drop table x; --".to_owned()], ..texts(Dialect::Sqlite) };
    assert!(hostile.insert().contains("\"a\"\"; drop table x; --\""), "{}", hostile.insert());
    let delta = hostile.remember("it's", "refrain_deltas", ["$1", "$2"]);
    assert!(delta.contains("'it''s'"), "{delta}");
}
