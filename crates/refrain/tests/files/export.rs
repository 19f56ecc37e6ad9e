//! A job that exports a table to files, and what readers see of them.

use std::fs;
use std::path::{Path, PathBuf};

use refrain::{Ask, RunReport};

use refrain_harness::TestDatabase;
use refrain_harness::project::TestProject;

pub(crate) const WINDOW: &str = "export@2020-06-09";
pub(crate) const VISIBLE: &str = "out/dt=2020-06-09";
pub(crate) const WHEN: &str = r#"
    schedule = "@daily"
    window = "day"
    start = 2020-06-01
    catch-up = "all"
    retry = { attempts = 50, backoff = "1s..1s" }
"#;

/// A daily job that writes the rows of this query.
pub(crate) fn exports(shop: &TestProject, query: &str, format: &str) {
    let publish = format!("[publish]\npath = \"out/dt={{ds}}/\"\nformat = \"{format}\"\n");
    shop.job("export", &format!("{WHEN}query = \"\"\"{query}\"\"\"\n{publish}"));
}

/// A shop with this many rows of a version, and a job that writes them.
pub(crate) async fn versioned(database: TestDatabase) -> TestProject {
    let shop = TestProject::of(database);
    shop.execute("create table items (id integer, version integer)").await;
    exports(&shop, "select id, version from items", "csv");
    shop.open().await.close().await;
    shop
}

/// Asserts two hundred rows of one version, and none of another.
pub(crate) async fn stock(shop: &TestProject, version: u32) {
    let rows: Vec<String> = (0..200).map(|id| format!("({id}, {version})")).collect();
    let insert = format!("insert into items values {}", rows.join(", "));
    let begin = shop.either("begin immediate", "begin");
    shop.execute(&format!("{begin}; delete from items; {insert}; commit")).await;
}

/// The content of a file with these rows.
pub(crate) fn stocked(version: u32) -> String {
    let mut ids: Vec<String> = (0..200).map(|id| id.to_string()).collect();
    ids.sort();
    let lines: Vec<String> = ids.iter().map(|id| format!("{id},{version}\n")).collect();
    format!("id,version\n{}", lines.concat())
}

/// What readers see, if anything is published.
pub(crate) fn seen(shop: &TestProject) -> Option<String> {
    fs::read_to_string(shop.root().join(VISIBLE).join("part-0.csv")).ok()
}

/// The names in a directory of the project, in order.
pub(crate) fn names(path: impl Into<PathBuf>) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path.into()) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether there is one directory behind the one visible name, and no leftover file.
pub(crate) fn is_tidy(shop: &TestProject) -> bool {
    let out = shop.root().join("out");
    let target = fs::read_link(shop.root().join(VISIBLE)).unwrap();
    let hidden = target.to_str().unwrap().to_owned();
    let mut expected = vec![hidden, ".refrain.lock".to_owned(), "dt=2020-06-09".to_owned()];
    expected.sort();
    let found = names(out);
    assert_eq!(found, expected, "these are there");
    Path::new(&target).is_relative()
}

/// Repeats it, and returns the failure that it must meet.
pub(crate) async fn failure(shop: &TestProject, run: &str) -> String {
    message(&shop.run(run, Ask::Again).await)
}

pub(crate) fn message(report: &RunReport) -> String {
    assert!(!report.is_done(), "it was to be refused");
    report.run.message.clone().unwrap_or_default()
}
