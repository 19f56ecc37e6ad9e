//! Tables and columns can have any name: words of Refrain's own statements, words of SQL, and
//! anything that can be quoted.

use refrain::admin::Differences;
use refrain::project::Project;
use refrain::{Ask, Refrain};

use crate::warehouse::daily;
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

/// Names of Refrain without their prefix, names that look like ours, words of SQL, and names that need quotes.
const NAMES: &str = "\
    rowid|s|t|d|d0|c|g|u|l|f|i|row|target|later|entry|change|amount:0|gone|found|inner|key|content|\
    hash|shown|holds|number|expected|there|unit|spoken|stage|staged|made|place|value|id|twins|checked|\
    landed|hashed|scope|ledger|name|fence|attempt|fingerprint|at|version|failures|written|status|now|\
    refrain_key|refrain_unit|refrain_order|refrain_number|refrain_spoken|refrain_rows|refrain_stage_1|\
    refrain_stage_1_keyed|refrain_units|c0|excluded|count|min|order|select|table|user|default|group|\
    where|null|MixedCase|with space|double\"quote|it's|a.b|100%|$1|:ds|größe 漢字|back\\slash|_rowid_|\
    oid|n23456789012345678901234567890123456789012345678901234567890123";

/// How many names one table has.
const GROUP: usize = 43;

/// The role of each name in one round.
struct Round {
    day: String,
    keys: Vec<String>,
    id: String,
    stamp: String,
    numbers: Vec<String>,
    /// Names that can be used unquoted for a table.
    tables: Vec<String>,
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}

/// The name as written in a job file.
fn written(name: &str) -> String {
    serde_json::Value::from(name).to_string()
}

fn array(names: &[String]) -> String {
    format!("[{}]", names.iter().map(|name| written(name)).collect::<Vec<_>>().join(", "))
}

impl Round {
    /// Each name of a group in both of its roles: the second time, the names of numbers are keys.
    fn of(names: &[&str], is_turned: bool) -> Round {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        if is_turned {
            names.reverse();
        }
        let tables = names.iter().filter(|name| !name.contains(['"', '.'])).cloned().collect();
        let mut names = names.into_iter();
        let [day, id, stamp] = [(); 3].map(|()| names.next().unwrap());
        let keys = names.by_ref().take(10).collect();
        Round { day, keys, id, stamp, numbers: names.collect(), tables }
    }

    fn key(&self) -> Vec<String> {
        [std::slice::from_ref(&self.day), self.keys.as_slice()].concat()
    }

    fn columns(&self) -> Vec<String> {
        [self.key(), self.numbers.clone()].concat()
    }

    /// A table with all columns, and these in addition.
    fn table(&self, name: &str, more: &str) -> String {
        let keys: Vec<String> =
            self.keys.iter().map(|name| format!("{} text not null", quoted(name))).collect();
        let numbers: Vec<String> =
            self.numbers.iter().map(|name| format!("{} bigint", quoted(name))).collect();
        let (day, id, stamp) = (quoted(&self.day), quoted(&self.id), quoted(&self.stamp));
        let (keys, numbers) = (keys.join(", "), numbers.join(", "));
        format!(
            "create table {} ({day} date, {keys}, {id} text, {stamp} integer, {numbers}{more})",
            quoted(name)
        )
    }

    /// Rows of the source: two per day.
    fn rows(&self, table: &str) -> String {
        let row = |which: &str, number: u32| {
            let keys = self.keys.iter().map(|_| format!("'{which}'"));
            let numbers = self.numbers.iter().map(|_| number.to_string());
            let all: Vec<String> =
                std::iter::once("'2026-06-09'".to_owned()).chain(keys).chain(numbers).collect();
            format!("({})", all.join(", "))
        };
        let rows = [row("a", 1), row("b", 2)].join(", ");
        format!("insert into {} ({}) values {rows}", quoted(table), listed(&self.columns()))
    }

    /// How many rows a table has, and the sum of each column of numbers.
    async fn sums(&self, shop: &TestProject, table: &str) -> Vec<String> {
        let sums: Vec<String> =
            self.numbers.iter().map(|name| format!("cast(sum({}) as text)", quoted(name))).collect();
        let query = format!(
            "select cast(count(*) as text) || ' ' || {} from {}",
            sums.join(" || ' ' || "),
            quoted(table)
        );
        shop.rows(&query).await
    }

    /// The sums of two rows of 1 and 2.
    fn expected(&self) -> Vec<String> {
        vec![format!("2 {}", vec!["3"; self.numbers.len()].join(" "))]
    }
}

/// What a job publishes besides its table, and what the table needs.
fn modes(round: &Round) -> Vec<(&'static str, String, String)> {
    let (key, unique) = (array(&round.key()), format!(", unique ({})", listed(&round.key())));
    let day = quoted(&round.day);
    let owns = format!("owns = '''{day} = :ds'''");
    let made = format!("surrogate = {{ {} = {key} }}\nstamp = {}", written(&round.id), written(&round.stamp));
    let check = format!("check = ['''count(*) = 2''', '''{} >= 1''']", quoted(&round.numbers[0]));
    let landed = ", \"source\" text not null, \"content_hash\" text not null, \
        \"occurrence\" integer not null, unique (\"source\", \"content_hash\", \"occurrence\")";
    let unit = "[unit]\nkey = \"unit:{$content}\"";
    let numbers = array(&round.numbers);
    let overwrite = format!("mode = \"overwrite\"\n{owns}\n{made}\n{check}");
    let merge = format!("mode = \"merge\"\nkey = {key}\n{owns}");
    let append = format!("mode = \"append-once\"\nkey = {key}\n{made}");
    let delta = format!("mode = \"apply-delta\"\nkey = {key}\ncolumns = {numbers}\ninsert-missing = true");
    let nothing = String::new;
    vec![
        ("", overwrite, nothing()),
        ("", format!("{merge}\ndelete-missing = true\n{made}\n{check}"), unique.clone()),
        ("", append.clone(), nothing()),
        ("", delta, unique.clone()),
        ("", "mode = \"land\"\nview = \"VIEW\"".to_owned(), landed.to_owned()),
        (unit, format!("{merge}\n{made}"), unique.clone()),
        (unit, append.clone(), nothing()),
        (unit, "mode = \"land\"".to_owned(), landed.to_owned()),
        (unit, format!("{merge}\nledger = false"), unique.clone()),
        (unit, format!("{append}\nledger = false"), unique),
    ]
}

async fn done(refrain: &Refrain, run: &str, what: &str) {
    let report = refrain.run(run, Ask::Again).await.unwrap();
    assert!(report.is_done(), "{what}: {:?}", report.run.message);
}

/// Every mode, from the same database and from another one, twice; jobs with units are then compared with their
/// source.
async fn round(database: &TestDatabase, round: &Round) {
    let shop = TestProject::of(TestDatabase::like(database).await);
    let other = TestProject::of(TestDatabase::like(database).await);
    let (url, elsewhere) = (shop.database.url(), other.database.url());
    shop.settings("sqlite:refrain.db", &format!("shop = \"{url}\"\nother = \"{elsewhere}\""));
    let (source, tables) = round.tables.split_first().unwrap();
    for place in [&shop, &other] {
        place.execute(&format!("{}; {}", round.table(source, ""), round.rows(source))).await;
    }
    let query = format!(
        "query = '''select {} from {} where {} = :ds'''",
        listed(&round.columns()),
        quoted(source),
        quoted(&round.day)
    );
    let mut jobs = Vec::new();
    for from in ["shop", "other"] {
        for (number, (unit, mode, more)) in modes(round).into_iter().enumerate() {
            // There are enough names for the tables of one database; those of the other have a number appended.
            let table =
                if from == "shop" { tables[number].clone() } else { format!("{} {number}", tables[number]) };
            shop.execute(&round.table(&table, &more)).await;
            let view = format!("{table} as view");
            let mode = mode.replace("\"VIEW\"", &written(&view));
            let job = format!("{from}-{number}");
            let publish = format!(
                r#"
                    [publish]
                    database = "shop"
                    table = {}
                    {mode}
                "#,
                written(&table)
            );
            daily(&shop, &job, &format!("database = \"{from}\"\n{query}\n{unit}\n{publish}"));
            jobs.push((job, table, mode, unit));
        }
    }
    let (refrain, project) = (shop.open().await, Project::load(shop.root()).unwrap());
    for (job, table, mode, unit) in &jobs {
        let (run, what) = (format!("{job}@2026-06-09"), format!("{table:?}, {mode}\n{unit}"));
        if mode.contains("view = ") && !shop.database.is_sqlite() {
            let report = refrain.run(&run, Ask::Again).await.unwrap();
            let text = report.run.message.clone().unwrap_or_default();
            let (_, make) = text.split_once("create it: ").unwrap();
            shop.execute(make).await;
        }
        done(&refrain, &run, &what).await;
        done(&refrain, &run, &what).await;
        assert_eq!(round.sums(&shop, table).await, round.expected(), "{what}");
        if mode.contains("view = ") {
            assert_eq!(round.sums(&shop, &format!("{table} as view")).await, round.expected(), "{what}");
        }
        if !unit.is_empty() {
            let reconciled = refrain.reconcile(&project, &run).await.unwrap();
            assert_eq!((reconciled.units, reconciled.differences), (2, Differences::default()), "{what}");
        }
    }
    refrain.close().await;
    project.close().await;
}

/// Half of the names, each in both of its roles.
async fn names(database: TestDatabase, part: usize) {
    let names: Vec<&str> = NAMES.split('|').collect();
    assert_eq!(names.len(), 2 * GROUP);
    for group in names.chunks(GROUP).skip(part).step_by(2) {
        for is_turned in [false, true] {
            round(&database, &Round::of(group, is_turned)).await;
        }
    }
}

#[both_databases]
async fn every_mode_takes_tables_and_columns_of_any_name_one(database: TestDatabase) {
    names(database, 0).await;
}

#[both_databases]
async fn every_mode_takes_tables_and_columns_of_any_name_two(database: TestDatabase) {
    names(database, 1).await;
}

#[both_databases]
async fn a_reserved_column_name_is_refused_with_advice(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table plain (\"refrain:key\" text, amount integer)").await;
    daily(
        &shop,
        "plain",
        r#"
            query = "select 1 as amount"
            [publish]
            table = "plain"
            mode = "append-once"
            key = ["amount"]
        "#,
    );
    let report = shop.run("plain@2026-06-09", Ask::Once).await;
    let text = report.run.message.clone().unwrap_or_default();
    assert!(
        text.contains(
            "`plain` has a column `refrain:key`, and names that begin with `refrain:` are reserved"
        ),
        "{text}"
    );
    assert!(text.contains("alter table \"plain\" rename column \"refrain:key\" to another_name"), "{text}");
}

/// Functions that fit our arguments better than the server's own, in a schema that is searched before the server's.
#[tokio::test]
async fn functions_of_a_user_do_not_shadow_those_of_the_server() {
    let shop = crate::warehouse::warehouse(TestDatabase::postgres().await).await;
    shop.execute(
        "create function public.json_build_array(text, text) returns json language sql as $$ select \
         cast('[\"same\"]' as json) $$;
         create function public.json_build_array(text) returns json language sql as $$ select \
         cast('[\"same\"]' as json) $$;
         create function public.sha256(bytea) returns bytea language sql as $$ select cast('' as bytea) \
         $$;
         create function public.to_json(text[]) returns json language sql as $$ select cast('[]' as \
         json) $$;
         create function public.strpos(text, text) returns integer language sql as $$ select 0 $$;
         do $$ begin execute format('alter database %I set search_path = public, pg_catalog', \
         current_database()); end $$",
    )
    .await;
    for mode in crate::warehouse::MODES {
        for ask in [Ask::Once, Ask::Again] {
            crate::warehouse::well(&shop, &crate::warehouse::window(mode), ask).await;
        }
    }
    assert_eq!(crate::warehouse::written(&shop, "append").await.len(), 2);
    assert_eq!(crate::warehouse::written(&shop, "delta").await, ["asia 1000 c", "eu 970 a", "us 986 b"]);
}
