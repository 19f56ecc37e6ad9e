//! What a store refuses: another project, an unknown schema, a replica.

use refrain::error::{DatabaseError, StoreError};
use refrain::{Error, Refrain};
use refrain_harness::every_store;

use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::proxy::Proxy;
use refrain_harness::server::PrivateServer;
use refrain_harness::work::{is_sound, june, nothing, open};

async fn refused(url: &str, project: &str) -> Error {
    match Refrain::at(url, project).unwrap().job(nothing("welcome")).open().await {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

#[every_store]
async fn a_store_has_one_project(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    let error = refused(&database.url(), "other").await;
    let StoreError::OtherProject { found, asked } = of_store(&error) else { panic!("{error}") };
    assert_eq!((found.as_str(), asked.as_str()), ("shop", "other"));
    assert!(error.to_string().contains("a store of its own") && error.is_usage());
    is_sound(&refrain).await;
}

#[every_store]
async fn f41_a_newer_schema_is_refused_and_left_unchanged(database: TestDatabase) {
    open(&database, [nothing("welcome")]).await.close().await;
    database
        .store("insert into refrain_migrations (number, name, applied_at, oldest) values (9999, 'later', 0, 9998)")
        .await;
    let error = refused(&database.url(), "shop").await;
    assert!(matches!(of_store(&error), StoreError::TooNew { found: 9999, .. }), "{error}");
    assert!(error.is_usage() && error.to_string().contains("a newer refrain has upgraded it"));
    let error = Refrain::migrate(&database.url()).await.unwrap_err();
    assert!(matches!(of_store(&error), StoreError::TooNew { .. }), "migrating does not go back: {error}");
    let steps = database.store_numbers("select cast(max(number) as bigint) from refrain_migrations").await;
    assert_eq!(steps, [9999]);
}

#[every_store]
async fn an_older_release_uses_a_store_with_only_additive_migrations_after_it(database: TestDatabase) {
    open(&database, [nothing("welcome")]).await.close().await;
    for table in ["refrain_migrations", "refrain_ledger_migrations"] {
        let later = format!(
            "insert into {table} (number, name, applied_at, oldest) select 9999, 'later', 0, max(number) from {table}"
        );
        database.store(&later).await;
    }
    assert_eq!(Refrain::migrate(&database.url()).await.unwrap(), [""; 0], "there is nothing to apply");
    let refrain = open(&database, [nothing("welcome")]).await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    assert_eq!(refrain.tick().await.unwrap().ended, 1);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_migration_that_does_not_record_the_oldest_schema_is_breaking(database: TestDatabase) {
    open(&database, [nothing("welcome")]).await.close().await;
    database
        .store("insert into refrain_migrations (number, name, applied_at) values (9999, 'later', 0)")
        .await;
    let error = refused(&database.url(), "shop").await;
    assert!(matches!(of_store(&error), StoreError::TooNew { found: 9999, .. }), "{error}");
}

#[every_store]
async fn a_served_store_cannot_become_a_simulation(database: TestDatabase) {
    let refrain = open(&database, [nothing("welcome")]).await;
    let serving = refrain.serve();
    let stop = serving.stop_handle();
    let serving = tokio::spawn(async move { serving.await.unwrap() });
    let workers = "select count(*) from refrain_workers";
    eventually("a worker is there", DEADLINE, async || database.store_numbers(workers).await != [0]).await;
    let set = || Refrain::at(&database.url(), "shop").unwrap().simulated(june("09T12:00")).open();
    let refused = set().await.err().unwrap();
    assert!(matches!(of_store(&refused), StoreError::Real), "{refused}");
    stop.drain();
    serving.await.unwrap();
    assert_eq!(database.store_numbers("select count(*) from refrain_store where simulated").await, [0]);
    assert!(set().await.is_ok(), "the process that served it has ended");
}

#[every_store]
async fn concurrent_migrations_create_the_tables_once(database: TestDatabase) {
    let url = database.url();
    let migrations = (0..6).map(|_| {
        let url = url.clone();
        tokio::spawn(async move { Refrain::migrate(&url).await.unwrap() })
    });
    let mut taken = Vec::new();
    for migration in migrations.collect::<Vec<_>>() {
        taken.push(migration.await.unwrap());
    }
    let mut steps = taken.concat();
    steps.sort_unstable();
    let all = [
        "0001_initial",
        "0001_ledger",
        "0002_applied",
        "0002_lanes",
        "0003_claims",
        "0003_claims",
        "0004_audit",
        "0004_place",
        "0005_releases",
        "0005_releases",
        "0006_failure",
        "0007_effects",
    ];
    assert_eq!(steps, all, "each migration was applied once");
    assert_eq!(Refrain::migrate(&url).await.unwrap(), [""; 0]);
}

fn of_store(error: &Error) -> &StoreError {
    match error {
        Error::Store(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn on_a_server_only_migrate_creates_tables() {
    let database = TestDatabase::postgres().await;
    let error = refused(&database.url(), "shop").await;
    assert!(matches!(of_store(&error), StoreError::Missing), "{error}");
    assert!(error.to_string().contains("refrain migrate"));
    assert_eq!(
        database.texts("select nspname::text from pg_namespace where nspname = 'refrain'").await,
        [""; 0]
    );

    open(&database, []).await.close().await;
    database.store("update refrain_migrations set number = number - 1").await;
    let error = refused(&database.url(), "shop").await;
    assert!(
        matches!(of_store(&error), StoreError::TooOld { found, needed } if found + 1 == *needed),
        "{error}"
    );
    assert!(error.to_string().contains("refrain migrate") && error.is_usage());
}

#[tokio::test]
async fn the_printed_script_makes_the_same_store_as_migrate() {
    let database = TestDatabase::postgres().await;
    let TestDatabase::Postgres { pool, .. } = &database else { unreachable!() };
    let script = sqlx::AssertSqlSafe(Refrain::migration_script());
    sqlx::raw_sql(script).execute(pool).await.unwrap();
    assert_eq!(Refrain::migrate(&database.url()).await.unwrap(), [""; 0]);
    is_sound(&open(&database, [nothing("welcome")]).await).await;
}

#[tokio::test]
async fn f22_a_replica_is_refused() {
    let mut server = PrivateServer::create().await;
    let url = server.url(&server.create_database().await);
    Refrain::migrate(&url).await.unwrap();
    Refrain::at(&url, "shop").unwrap().job(nothing("welcome")).open().await.unwrap().close().await;

    server.restart_as_replica().await;
    let error = refused(&url, "shop").await;
    assert!(matches!(of_store(&error), StoreError::Database(DatabaseError::Replica)), "{error}");
    assert!(error.to_string().contains("the primary") && error.is_usage());
    assert!(Refrain::migrate(&url).await.is_err());
}

#[tokio::test]
async fn an_unreachable_server_is_reported_as_transient() {
    let address = refrain_harness::address::ServerUrl::unused();
    let error = refused(&address.url("shop"), "shop").await;
    assert!(error.is_transient() && error.to_string().contains("is the server running"), "{error}");
}

/// The connection breaks while Refrain reads which server this is.
#[tokio::test]
async fn a_store_is_not_opened_when_its_server_fails_to_identify_itself() {
    let database = TestDatabase::postgres().await;
    let direct = database.url();
    Refrain::migrate(&direct).await.unwrap();
    let network = Proxy::in_front_of(&direct).await;
    let url = network.url(direct.rsplit('/').next().unwrap());
    network.cut_after_forwarding(b"pg_control_system");
    let error = refused(&url, "shop").await;
    assert!(matches!(of_store(&error), StoreError::Database(DatabaseError::Lost(_))), "{error}");
    assert_eq!(network.cuts(), 1);
    Refrain::at(&url, "shop").unwrap().open().await.unwrap().close().await;
    let place = database.store_texts("select place from refrain_store").await.concat();
    assert!(
        place.contains("system="),
        "without it a copy could not be distinguished from the store: {place}"
    );
}

/// Holds the migrations of a store as another process does, while a step of this process waits for them.
async fn waits_for_the_migrations<T: Send + 'static>(
    database: &TestDatabase,
    step: impl Future<Output = T> + Send + 'static,
) -> T {
    let TestDatabase::Postgres { pool, .. } = database else { unreachable!() };
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("select number from refrain.migrations order by number for update")
        .fetch_all(&mut *holder)
        .await
        .unwrap();
    let waiting = "select count(*) from pg_stat_activity where datname = current_database()
        and wait_event_type = 'Lock' and query like '%refrain.migrations%for %'";
    let step = tokio::spawn(step);
    let mut waits = 0;
    eventually("it waits or is done", DEADLINE, async || {
        waits = database.store_numbers(waiting).await[0];
        waits > 0 || step.is_finished()
    })
    .await;
    assert_eq!(waits, 1, "it waits");
    holder.rollback().await.unwrap();
    step.await.unwrap()
}

#[tokio::test]
async fn a_worker_that_registers_waits_for_a_migration() {
    let database = TestDatabase::postgres().await;
    let refrain = open(&database, [nothing("welcome")]).await;
    refrain.enqueue("welcome", "42", &()).await.unwrap();
    let ticking = refrain.clone();
    let tick = Box::pin(async move { ticking.tick().await });
    let ticked = waits_for_the_migrations(&database, tick).await;
    assert_eq!(ticked.unwrap().ended, 1);
}

#[tokio::test]
async fn a_migration_waits_for_a_worker_that_registers() {
    let database = TestDatabase::postgres().await;
    open(&database, []).await.close().await;
    for undone in [
        "delete from refrain_migrations where number > 6",
        "drop index refrain_effects_one_sender, refrain_effects_holder, refrain_effects_open",
        "alter table refrain_effects drop column holder, drop column nonce, drop column sends, \
         drop column first_sent_at, drop column last_sent_at, drop column unanswered_at, \
         drop column changed_at, drop column receipt, drop column message",
        "alter table refrain_workers drop column sends",
    ] {
        database.store(undone).await;
    }
    let url = database.url();
    let migrate = Box::pin(async move { Refrain::migrate(&url).await });
    let migrated = waits_for_the_migrations(&database, migrate).await;
    assert_eq!(migrated.unwrap(), ["0007_effects"]);
}
