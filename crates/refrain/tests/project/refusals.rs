//! What a project cannot use is refused with an error that names the database, the problem and the
//! remedy.

use refrain::project::{Project, ProjectError};
use refrain::{Ask, Error};

use refrain_harness::TestDatabase;
use refrain_harness::address::{ServerUrl, unused_port};
use refrain_harness::project::TestProject;

async fn shop() -> TestProject {
    let shop = TestProject::of(TestDatabase::sqlite().await);
    shop.execute("create table totals (day date)").await;
    shop.daily("total", "insert into totals values (:ds)", "retry = { attempts = 1 }");
    shop
}

fn refused(opened: Result<refrain::Refrain, Error>) -> Error {
    opened.err().expect("it should be refused")
}

#[tokio::test]
async fn a_path_is_relative_to_the_project_and_not_to_the_current_directory() {
    let shop = shop().await;
    let path = shop.database.url();
    let path = path.strip_prefix("sqlite:").unwrap();
    std::fs::create_dir(shop.root().join("data")).unwrap();
    std::fs::copy(path, shop.root().join("data/shop.db")).unwrap();
    shop.settings("sqlite:data/refrain.db", "shop = \"sqlite:data/shop.db\"");
    assert!(shop.run("total@2020-06-09", Ask::Once).await.is_done());
    assert!(shop.root().join("data/refrain.db").exists());
    let copy = sqlx::SqlitePool::connect(&format!("sqlite:{}", shop.root().join("data/shop.db").display()))
        .await
        .unwrap();
    let days: Vec<String> = sqlx::query_scalar("select day from totals").fetch_all(&copy).await.unwrap();
    assert_eq!(days, ["2020-06-09"]);
    assert_eq!(shop.rows("select day from totals").await, [""; 0]);
}

#[tokio::test]
async fn a_missing_database_file_is_an_error_and_is_not_created() {
    let shop = shop().await;
    shop.settings("sqlite:refrain.db", "shop = \"sqlite:shpo.db\"");
    let error = refused(shop.opened().await);
    let text = error.to_string();
    assert!(text.starts_with("the file of the database `shop` does not exist\n  check its URL"), "{text}");
    assert!(text.contains(&shop.root().join("shpo.db").display().to_string()), "{text}");
    assert!(error.is_usage() && !error.is_transient());
    assert!(!shop.root().join("shpo.db").exists());
}

#[tokio::test]
async fn a_file_that_is_not_a_database_is_named() {
    let shop = shop().await;
    shop.write("shop.db", &"no database, but a text that is long enough to have a header. ".repeat(20));
    shop.settings("sqlite:refrain.db", "shop = \"sqlite:shop.db\"");
    let text = refused(shop.opened().await).to_string();
    assert!(text.contains("database `shop`") && text.contains("not a SQLite file"), "{text}");
}

#[tokio::test]
async fn a_server_error_names_the_url_without_its_password() {
    let shop = shop().await;
    let server = ServerUrl::of(&std::env::var("REFRAIN_TEST_POSTGRES").expect("a server: run ./test"));
    let wrong = ServerUrl { password: "swordfish".to_owned(), ..server.clone() };
    for (url, expected, is_transient) in [
        (server.behind(unused_port()).url("shop"), "the database `shop` cannot be reached", true),
        (wrong.url("no_such_database"), "the database `shop` denied access", false),
    ] {
        shop.settings("sqlite:refrain.db", &format!("shop = \"{url}\""));
        let error = refused(shop.opened().await);
        let text = error.to_string();
        assert!(text.starts_with(expected) && text.contains("[databases]"), "{text}");
        assert!(!text.contains("swordfish") && !text.contains(&format!(":{}@", server.password)), "{text}");
        assert_eq!(error.is_transient(), is_transient, "{text}");
    }
}

#[tokio::test]
async fn a_missing_table_fails_the_run_and_not_the_project() {
    let shop = shop().await;
    shop.execute("drop table totals").await;
    let report = shop.run("total@2020-06-09", Ask::Once).await;
    let message = report.run.message.clone().unwrap();
    assert_eq!(message, "statement 1 of 1 (`insert into totals values (:ds)`): no such table: totals");
    shop.execute("create table totals (day date)").await;
    assert!(shop.run("total@2020-06-09", Ask::Once).await.is_done());
}

#[tokio::test]
async fn a_server_without_ledger_tables_is_refused_with_the_statements() {
    let shop = TestProject::of(TestDatabase::postgres().await);
    shop.settings("sqlite:refrain.db", &format!("shop = \"{}\"", shop.database.url()));
    shop.execute("create table totals (day date)").await;
    shop.daily("total", "insert into totals values (:ds)", "");
    let project = Project::load(shop.root()).unwrap();
    let refrain = project.opening(None).await.unwrap().open().await.unwrap();
    let report = refrain.run("total@2020-06-09", Ask::Once).await.unwrap();
    let text = refrain.attempts(&report.run).await.unwrap().pop().unwrap().message.unwrap();
    assert!(
        text.starts_with("there is no ledger in this database yet\n  create it: refrain migrate"),
        "{text}"
    );
    assert!(text.contains("create "), "{text}");
    refrain.close().await;

    let taken = project.migrate().await.unwrap();
    assert_eq!((taken[0].0.as_str(), taken[0].1.len()), ("shop", 5));
    assert!(shop.run("total@2020-06-09", Ask::Once).await.is_done());
    assert_eq!(project.destinations(), ["shop"]);
}

#[tokio::test]
async fn s10_a_statement_file_is_a_plain_name_beside_the_jobs() {
    let shop = shop().await;
    shop.write("secret.sql", "insert into totals values ('2020-01-01')");
    shop.write("jobs/totals.sql", "insert into totals values (:ds)");
    let outside = shop.root().join("secret.sql").display().to_string();
    for name in [
        "../secret.sql",
        "./../secret.sql",
        "..\\\\secret.sql",
        "sub/../../secret.sql",
        &outside,
        "..sql",
        "nowhere.sql",
    ] {
        shop.daily("total", name, "");
        let Err(ProjectError::Problems(problems)) = Project::load(shop.root()) else {
            panic!("{name} was taken");
        };
        let reported = &problems.problems[0].message;
        assert!(
            reported.contains("not a file next to the job file") || reported.contains("there is no file"),
            "{name}: {reported}"
        );
    }
    shop.daily("total", "totals.sql", "");
    assert!(shop.run("total@2020-06-09", Ask::Once).await.is_done());
}
