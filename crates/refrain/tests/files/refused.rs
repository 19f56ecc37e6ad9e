//! What is refused and reported: no file is touched that the run does not own.

use std::fs;
use std::os::unix::fs::symlink;

use refrain::{Ask, Refrain};

use crate::export::{
    VISIBLE, WHEN, WINDOW, exports, failure, is_tidy, message, names, seen, stock, stocked, versioned,
};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

async fn named(refrain: &Refrain, key: &str, name: &str) -> refrain::RunReport {
    let payload = serde_json::json!({ "name": name }).to_string();
    refrain.enqueue_json("export", key, Some(&payload)).await.unwrap();
    refrain.run(&format!("export#{key}"), Ask::Once).await.unwrap()
}

#[both_databases]
async fn s10_a_payload_value_cannot_choose_the_directory(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table items (id integer)").await;
    let publish = "[publish]\npath = \"out/{payload.name}/rows\"\n";
    shop.job("export", &format!("queue = true\nquery = \"select id from items\"\n{publish}"));
    let refrain = shop.open().await;
    let before = names(shop.root());
    let hostile = ["..", ".", "", "../../etc", "a/b", "/tmp", "a\\b", "a\nb", ".refrain.lock"];
    for (key, name) in hostile.into_iter().enumerate() {
        let reported = message(&named(&refrain, &format!("k{key}"), name).await);
        assert!(
            reported.contains("{payload.name}") && reported.contains("part of a directory name"),
            "{name:?}: {reported}"
        );
    }
    assert_eq!(names(shop.root()), before);
    let report = named(&refrain, "good", "-rf $(id) ü").await;
    assert!(report.is_done(), "{:?}", report.run.message);
    assert!(shop.root().join("out/-rf $(id) ü/rows/part-0.csv").exists());
}

#[both_databases]
async fn s10_the_name_of_a_scope_cannot_choose_the_directory(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table orgs (id text); insert into orgs values ('acme'), ('..'), ('.hidden')").await;
    let publish = "[publish]\npath = \"out/dt={ds}/{scope}\"\n";
    let query = "query = \"select id from orgs where id = :scope\"";
    shop.job("export", &format!("{WHEN}scopes = \"select id from orgs\"\n{query}\n{publish}"));
    shop.run(WINDOW, Ask::Once).await;
    for scope in ["..", ".hidden"] {
        let reported = failure(&shop, &format!("{WINDOW}/{scope}")).await;
        assert!(reported.contains("begins with a dot"), "{reported}");
    }
    assert!(shop.run(&format!("{WINDOW}/acme"), Ask::Again).await.is_done());
    assert_eq!(
        fs::read_to_string(shop.root().join("out/dt=2020-06-09/acme/part-0.csv")).unwrap(),
        "id\nacme\n"
    );
    assert_eq!(names(shop.root().join("out")), ["dt=2020-06-09"]);
}

#[both_databases]
async fn files_of_other_programs_are_left_unchanged(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    let visible = shop.root().join(VISIBLE);
    shop.write(&format!("{VISIBLE}/precious"), "mine");
    let reported = failure(&shop, WINDOW).await;
    assert!(reported.contains("not a link that Refrain created") && reported.contains("mv '"), "{reported}");
    assert_eq!(fs::read_to_string(visible.join("precious")).unwrap(), "mine");
    fs::remove_dir_all(&visible).unwrap();

    fs::write(&visible, "mine").unwrap();
    assert!(failure(&shop, WINDOW).await.contains("not a link that Refrain created"));
    assert_eq!(fs::read_to_string(&visible).unwrap(), "mine");
    fs::remove_file(&visible).unwrap();

    symlink("elsewhere", &visible).unwrap();
    assert!(failure(&shop, WINDOW).await.contains("is a link to `elsewhere`"));
    assert_eq!(fs::read_link(&visible).unwrap().to_str(), Some("elsewhere"));
    fs::remove_file(&visible).unwrap();

    assert_eq!(names(shop.root().join("out")), [".refrain.lock"], "nothing is left of the failures");
    assert!(shop.run(WINDOW, Ask::Again).await.is_done());
    assert_eq!(seen(&shop), Some(stocked(1)));
}

#[both_databases]
async fn two_jobs_cannot_publish_to_one_path(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    shop.run(WINDOW, Ask::Once).await;
    let text = fs::read_to_string(shop.root().join("jobs/export.toml")).unwrap();
    shop.job("other", &text.replace("id, version", "id, 7 as version"));
    let reported = failure(&shop, "other@2020-06-09").await;
    assert!(reported.contains("the files of another run"), "{reported}");
    assert_eq!(seen(&shop), Some(stocked(1)));
    fs::remove_file(shop.root().join(VISIBLE)).unwrap();
    assert!(shop.run("other@2020-06-09", Ask::Again).await.is_done());
    assert_eq!(seen(&shop), Some(stocked(7)));
}

#[both_databases]
async fn a_directory_that_cannot_be_created_is_reported_and_nothing_changes(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    shop.write("file", "mine");
    let text = fs::read_to_string(shop.root().join("jobs/export.toml")).unwrap();
    shop.job("export", &text.replace("out/", "file/").replace("attempts = 50", "attempts = 1"));
    let reported = failure(&shop, WINDOW).await;
    assert!(
        reported.contains("cannot be created") && reported.contains("nothing was published"),
        "{reported}"
    );
    assert_eq!(fs::read_to_string(shop.root().join("file")).unwrap(), "mine");
}

#[both_databases]
async fn a_failed_query_leaves_the_published_version(database: TestDatabase) {
    let shop = versioned(database).await;
    stock(&shop, 1).await;
    shop.run(WINDOW, Ask::Once).await;
    for (query, expected) in [
        ("select id, nothing from items", "nothing"),
        ("select id, id from items", "two columns of the query are named `id`"),
        ("select id / (id - id) as q, abs(-9223372036854775807 - 1) as version from items", ""),
    ] {
        exports(&shop, query, "csv");
        let text = fs::read_to_string(shop.root().join("jobs/export.toml")).unwrap();
        shop.job("export", &text.replace("attempts = 50", "attempts = 1"));
        let reported = failure(&shop, WINDOW).await;
        assert!(reported.contains(expected), "{query}: {reported}");
        assert_eq!(seen(&shop), Some(stocked(1)));
        assert!(is_tidy(&shop));
    }
}
