//! A store that the previous release filled is upgraded, and its finished work stays done.

use crate::support::release::Filled;

const APPLIED: [&str; 4] =
    ["applied 0005_releases", "applied 0006_failure", "applied 0007_effects", "is up to date"];

fn is_upgraded(filled: &Filled) {
    let desk = &filled.desk;
    desk.refrain("fsck").succeeds(&[]);
    desk.refrain("status").succeeds(&["2001-06-01", "Ada"]);
    for done in ["revenue@2001-06-01", "stock@2001-06-02", "customers#1", "letter#Ada", "digest@2001-06-01"] {
        desk.refrain(&format!("run {done}")).succeeds(&["0 processed", " deduplicated, 0 failed"]);
    }
    desk.refrain("run customers#3").succeeds(&["0 processed, 0 skipped, 2 deduplicated, 0 failed"]);
    desk.refrain("run stock@2001-06-01 --again").succeeds(&["done (attempt 2)"]);
    desk.refrain("run revenue@2001-06-03").succeeds(&["done (attempt 1)"]);
    desk.refrain("run letter#Eve").succeeds(&["1 processed"]);
    assert_eq!(desk.refrain("retry invoices#june").code, Some(1), "the unit that failed still fails");
    assert_eq!(
        desk.refrain("run payment@2001-06-01").code,
        Some(4),
        "its worker was killed in the middle of it"
    );
    desk.refrain("trace invoice:13").succeeds(&["no customer has invoice 13"]);
    desk.refrain("audit").succeeds(&["orders came late", "migrate"]);
    desk.refrain("fsck").succeeds(&[]);
}

#[tokio::test]
async fn a_store_of_the_release_before_is_upgraded_and_nothing_is_done_again_on_sqlite() {
    let filled = Filled::sqlite().await;
    filled.desk.refrain("migrate").succeeds(&APPLIED);
    is_upgraded(&filled);
}

#[tokio::test]
async fn a_store_of_the_release_before_is_upgraded_and_nothing_is_done_again_on_postgres() {
    let filled = Filled::postgres().await;
    filled.desk.refrain("run customers#1").refuses(2, &["has schema 4", "refrain migrate"]);
    filled.desk.refrain("migrate").succeeds(&APPLIED);
    is_upgraded(&filled);
}

#[tokio::test]
async fn a_run_upgrades_a_file_by_itself() {
    let filled = Filled::sqlite().await;
    filled.desk.refrain("run letter#Ada").succeeds(&["0 processed", " deduplicated, 0 failed"]);
    filled.desk.refrain("migrate").succeeds(&["is up to date, 0 migrations"]);
}

async fn waits_for_an_older_worker(filled: &Filled, commands: &[&str]) {
    let alive =
        "update refrain_workers set process = 'another/machine/7/7', expires_at = 9000000000000000000";
    filled.store(alive).await;
    for command in commands {
        filled
            .desk
            .refrain(command)
            .refuses(75, &["of an older release", "another/machine/7/7", "stop that process"]);
    }
    filled.store("update refrain_workers set expires_at = 0").await;
    filled.desk.refrain(commands.first().unwrap()).succeeds(&[]);
}

#[tokio::test]
async fn no_file_is_upgraded_under_a_worker_of_an_older_release() {
    waits_for_an_older_worker(
        &Filled::sqlite().await,
        &["run letter#Ada", "enqueue letter --key Fay", "tick", "migrate"],
    )
    .await;
}

/// Its lease is valid for hours, but it has ended on this machine, and nothing else has its name.
#[tokio::test]
#[cfg(target_os = "linux")]
async fn a_worker_whose_process_is_gone_does_not_stop_an_upgrade() {
    let filled = Filled::sqlite().await;
    let fields = std::fs::read_to_string("/proc/self/stat").unwrap();
    let started: u64 =
        fields.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let inode = |name: &str| {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
        link.to_string_lossy().chars().filter(char::is_ascii_digit).collect::<String>()
    };
    let namespace = format!("{}-{}", inode("pid"), inode("time"));
    let gone = format!("{}/{namespace}/{}/{}", boot.trim(), std::process::id(), started - 1);
    filled.desk.refrain("migrate").succeeds(&APPLIED);
    let older = format!(
        "insert into refrain_workers (process, started_at, expires_at, schema, ledger_schema)
         values ('{gone}', 0, 9000000000000000000, 4, 4)"
    );
    filled.store(&older).await;
    for index in ["one_sender", "holder", "open"] {
        filled.store(&format!("drop index refrain_effects_{index}")).await;
    }
    let added = ["holder", "nonce", "sends", "first_sent_at", "last_sent_at", "unanswered_at", "changed_at"];
    for column in added.into_iter().chain(["receipt", "message"]) {
        filled.store(&format!("alter table refrain_effects drop column {column}")).await;
    }
    filled.store("alter table refrain_workers drop column sends").await;
    filled.store("delete from refrain_migrations where number > 6").await;
    filled.desk.refrain("migrate").succeeds(&["applied 0007_effects"]);
}

#[tokio::test]
async fn no_server_is_upgraded_under_a_worker_of_an_older_release() {
    waits_for_an_older_worker(&Filled::postgres().await, &["migrate"]).await;
}
