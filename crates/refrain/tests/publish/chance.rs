//! Killed at random, again and again.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use refrain::Ask;
use refrain::core::random::{SeededRandom, duration_up_to};
use rustix::process::Signal;
use tokio::time::timeout;

use crate::warehouse::{MODES, warehouse, well, window, written};
use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;

/// How many processes are killed, the same number in each mode: a hundred with `REFRAIN_FULL`.
fn kills() -> usize {
    MODES.len() * if std::env::var_os("REFRAIN_FULL").is_some() { 100 } else { 4 }
}

/// How many processes are started at most per killed one: some end before.
const STARTS_MAX: usize = 20;

/// A shop with so many orders that publishing takes a moment, and jobs with tries enough for many kills.
async fn busy(database: TestDatabase) -> TestProject {
    let shop = warehouse(database).await;
    let series = shop.either(
        "with recursive n (i) as (select 100 union all select i + 1 from n where i < 3000) select i from n",
        "select i from generate_series(100, 3000) as n (i)",
    );
    shop.execute(&format!("insert into orders select i, '2026-06-09', 'r' || i, i from ({series}) as s"))
        .await;
    shop.execute("insert into stock select 'r' || id, 0, 'new' from orders where id >= 100").await;
    for mode in MODES {
        let text = std::fs::read_to_string(shop.root().join(format!("jobs/{mode}.toml"))).unwrap();
        shop.job(mode, &text.replace("attempts = 1", "attempts = 1000, backoff = \"1s..1s\""));
    }
    shop
}

#[both_databases]
async fn m7_killed_at_random_a_window_ends_as_if_it_had_run_once(database: TestDatabase) {
    let clean = busy(TestDatabase::like(&database).await).await;
    let mut expected = Vec::new();
    for mode in MODES {
        well(&clean, &window(mode), Ask::Once).await;
        expected.push(written(&clean, mode).await);
    }
    let shop = busy(database).await;
    shop.open().await.close().await;
    let mut before = Vec::new();
    for mode in MODES {
        before.push(written(&shop, mode).await);
    }
    let guarded = shop.root().join("guarded");
    let (mut random, mut killed, mut inside) = (SeededRandom::of_member(7, 1), 0, 0);
    let mut span = Duration::from_millis(400);
    for _ in 0..kills() * STARTS_MAX {
        let at = killed % MODES.len();
        std::fs::write(&guarded, [0]).unwrap();
        let variables = [("REFRAIN_GUARDED", guarded.to_str().unwrap()), ("PROJECT_LEASE", "600")];
        let mut process = shop.process(&["run", &window(MODES[at]), "--again"], &variables);
        // Kills it at whatever it is doing.
        let moment = duration_up_to(span, &mut random);
        let _ = timeout(moment, process.line_with("never said")).await;
        process.signal(Signal::KILL);
        if process.wait().await.signal() == Some(Signal::KILL.as_raw()) {
            killed += 1;
            // Empty if it was killed before it could report anything.
            inside += usize::from(std::fs::read(&guarded).unwrap().first().is_some_and(|open| *open > 0));
            span = span * 11 / 10;
        } else {
            span = span * 9 / 10;
        }
        let left = written(&shop, MODES[at]).await;
        assert!(left == expected[at] || left == before[at], "{} is torn: {} rows", MODES[at], left.len());
        if killed == kills() {
            break;
        }
    }
    for (mode, expected) in MODES.into_iter().zip(&expected) {
        let is_done = async || shop.run(&window(mode), Ask::Again).await.is_done();
        eventually("what was killed is done", DEADLINE, is_done).await;
        assert_eq!(written(&shop, mode).await, *expected, "{mode}");
    }
    eprintln!("{killed} killed, {inside} of them in a transaction that writes");
    assert!(killed == kills() && inside > 0, "{killed} killed, {inside} inside");
}
