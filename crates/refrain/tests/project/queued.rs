//! Jobs whose runs are enqueued: done once per key, with their payload.

use refrain::Ask;
use refrain::core::state::RunNode;

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

#[both_databases]
async fn a_payload_reaches_statements_and_a_key_is_done_once(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table users (id integer, name text)").await;
    let sql = "insert into users values (:payload.user.id, :payload.name)";
    shop.job("welcome", &format!("queue = true\nretry = {{ attempts = 1 }}\nsql = \"{sql}\"\n"));
    let refrain = shop.open().await;
    let ada = r#"{"user": {"id": 42}, "name": "Ada"}"#;
    assert!(refrain.enqueue_json("welcome", "42", Some(ada)).await.unwrap().did.is_new());
    assert!(!refrain.enqueue_json("welcome", "42", Some(ada)).await.unwrap().did.is_new());
    refrain.tick().await.unwrap();
    refrain.run("welcome#42", Ask::Again).await.unwrap();
    assert_eq!(shop.rows("select cast(id as text) || ' ' || name from users").await, ["42 Ada"]);

    for (key, payload, text) in [
        ("43", Some(r#"{"user": {"id": 43}}"#), "`:payload.name` has no value in this run"),
        ("44", Some(r#"{"user": {"id": 44}, "name": null}"#), "`:payload.name` is null"),
        ("45", None, "`:payload.user.id` has no value in this run"),
    ] {
        refrain.enqueue_json("welcome", key, payload).await.unwrap();
        let run = refrain.run(&format!("welcome#{key}"), Ask::Once).await.unwrap().run;
        let message = run.message.unwrap();
        assert!(run.standing.node() == RunNode::Failed && message.contains(text), "{message}");
    }
    assert_eq!(shop.rows("select name from users").await.len(), 1);
}

#[both_databases]
async fn a_payload_reaches_a_command_as_whole_arguments_and_in_its_environment(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.job(
        "greet",
        r#"
            queue = true
            command = [
                "sh", "-c", "printf '%s|' \"$@\" \"$REFRAIN_PAYLOAD\" \"$REFRAIN_RUN\"", "sh",
                "{payload.name}", "--id={payload.user.id}",
            ]
        "#,
    );
    shop.open().await.close().await;
    let payload = r#"{"user":{"id":42},"name":"Ada; $(touch pwned) *"}"#;
    assert_eq!(shop.done(&["enqueue", "greet", "a b", payload]).await, "New\n");
    assert_eq!(shop.done(&["enqueue", "greet", "a b", payload]).await, "Deduplicated\n");
    let reported = shop.done(&["run", "greet#a b"]).await;
    assert_eq!(reported, format!("did Ran done 1\nAda; $(touch pwned) *|--id=42|{payload}|greet#a b|"));
    assert!(!shop.root().join("pwned").exists());
}
