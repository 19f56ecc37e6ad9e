//! The whole life of one key: in every database, job and effect. And retrying a parked unit.

use refrain_harness::both_shops;
use std::time::Duration;

use refrain::core::JobName;
use refrain::core::retry::{Backoff, Retry};
use refrain::core::state::{OnChange, RunOutcome, UnitStatus};
use refrain::ledger::{Intent, Per};
use refrain::{Ask, Did, Error, JobError, Ledger, Refrain, key};

use crate::intents::opened;
use crate::shop::{Backend, Invoice, Shop, Source, invoice, invoices, ran, sync};
use refrain_harness::work::{Gate, Seen, job};

/// Asserts that the causes of an answer have these rules, in this order, and that each contains its words.
async fn has_causes(refrain: &Refrain, subject: &str, causes: &[(&str, &[&str])]) {
    let why = refrain.why(subject).await.unwrap();
    let rules: Vec<&str> = why.causes.iter().map(refrain::core::why::Cause::rule).collect();
    assert_eq!(rules, causes.iter().map(|(rule, _)| *rule).collect::<Vec<_>>(), "{:?}", why.causes);
    for (cause, (_, words)) in why.causes.iter().zip(causes) {
        let causes_text = cause.to_string();
        words.iter().for_each(|word| assert!(causes_text.contains(word), "{word} is not in: {causes_text}"));
    }
}

const ONCE: Retry =
    Retry { attempts: 1, backoff: Backoff { min: Duration::from_millis(1), max: Duration::from_millis(1) } };

#[both_shops]
async fn a_key_is_found_in_every_job_effect_and_queue<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(invoices(2));
    let other = sync(&shop, &source, Per::Ever, |units| units).named("mirror").unwrap();
    let seen = Seen::default();
    let jobs = [sync(&shop, &source, Per::Ever, |units| units), other, seen.job("welcome")];
    let refrain = opened(&shop, jobs).await;
    ran(&refrain, "sync#monday").await;
    ran(&refrain, "mirror#tuesday").await;
    let ledger = Ledger::open(&shop.pool, "shop", "sign-up").await.unwrap();
    for _ in 0..2 {
        let mut tx = shop.pool.begin().await.unwrap();
        ledger
            .intend(&mut tx, [Intent::effect("mail", key!("invoice", 1).unwrap(), 2).unwrap()])
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }
    refrain.enqueue("welcome", "invoice:1", &()).await.unwrap();
    refrain.tick().await.unwrap();

    let trace = refrain.trace("invoice:1").await.unwrap();
    let units: Vec<(&str, Option<&str>, UnitStatus)> =
        trace.units.iter().map(|unit| (unit.job.as_str(), unit.run.as_deref(), unit.status)).collect();
    let applied = UnitStatus::Applied;
    assert_eq!(units, [("mirror", Some("tuesday"), applied), ("sync", Some("monday"), applied)]);
    let tried: Vec<String> = trace.tried_by.iter().map(|run| run.name.clone()).collect();
    assert_eq!(tried, ["mirror#tuesday", "sync#monday"]);
    let [effect] = trace.effects.as_slice() else { panic!("{:?}", trace.effects) };
    assert_eq!((effect.name.as_str(), effect.version, effect.dedupes), ("mail", 2, 1));
    let [enqueued] = trace.enqueued.as_slice() else { panic!("{:?}", trace.enqueued) };
    assert!(enqueued.name == "welcome#invoice:1" && enqueued.record.standing.is_done());
    assert!(refrain.trace("invoice:3").await.unwrap().is_empty());
    assert!(matches!(refrain.trace("").await.unwrap_err(), Error::Parse(_)));
}

#[both_shops]
async fn retrying_a_parked_unit_adds_an_attempt_to_its_run<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of([invoices(2), vec![invoice(3, -1)]].concat());
    let refrain = opened(&shop, [sync(&shop, &source, Per::Ever, |units| units).retry(ONCE)]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday partial 1");
    let [unit] = &refrain.trace("invoice:3").await.unwrap().units[..] else { panic!("one unit") };
    assert_eq!(unit.status, UnitStatus::Parked);
    assert!(unit.message.is_some() && unit.input.is_some());

    source.shows(Vec::new());
    shop.execute("alter table invoices rename to broken").await;
    shop.execute(
        "create table invoices (id bigint primary key, total bigint not null, writes bigint not null)",
    )
    .await;
    assert_eq!(refrain.unpark("sync#monday", "invoice:1").await.unwrap(), 0, "it is not parked");
    assert_eq!(refrain.unpark("sync#monday", "invoice:3").await.unwrap(), 1);
    let report = refrain.retry("sync#monday").await.unwrap();
    assert_eq!((report.did, report.run.standing.outcome), (Did::Ran, Some(RunOutcome::Done)));
    assert_eq!(shop.totals().await, [-1], "only what failed is done again");
}

#[both_shops]
async fn a_done_or_unknown_unit_cannot_be_retried<DB: Backend>(shop: Shop<DB>) {
    let flaky =
        job(
            "flaky",
            |run| async move { if run.attempt() == 1 { Err(JobError::for_good("no")) } else { Ok(()) } },
        );
    let refrain = opened(&shop, [flaky]).await;
    let refused = refrain.retry("flaky#1").await.unwrap_err();
    assert!(matches!(refused, Error::NoRun(_)), "{refused}");
    assert!(!refrain.run("flaky#1", Ask::Once).await.unwrap().is_done());
    assert!(refrain.retry("flaky#1").await.unwrap().is_done());
    let refused = refrain.retry("flaky#1").await.unwrap_err().to_string();
    assert!(
        refused.contains("done, by attempt 2") && refused.contains("refrain run flaky#1 --again"),
        "{refused}"
    );
    refrain.enqueue("flaky", "2", &()).await.unwrap();
    refrain.cancel("flaky#2").await.unwrap();
    assert!(refrain.retry("flaky#2").await.unwrap().is_done(), "the caller retries it all the same");
}

#[both_shops]
async fn x3_a_partial_run_names_its_units_and_a_unit_its_run<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of([invoices(2), vec![invoice(3, -1)]].concat());
    let refrain = opened(&shop, [sync(&shop, &source, Per::Ever, |units| units).retry(ONCE)]).await;
    ran(&refrain, "sync#monday").await;
    let retry = "refrain retry sync#monday --unit invoice:3";
    has_causes(&refrain, "sync#monday", &[("partial", &["sync#monday", "parked: invoice:3", retry])]).await;
    has_causes(
        &refrain,
        "invoice:3",
        &[("parked", &["`invoice:3` of sync", "by sync#monday, attempt 1", retry])],
    )
    .await;
    let words = ["by sync#monday, attempt 1", "version 1", "refrain trace invoice:1"];
    has_causes(&refrain, "invoice:1", &[("applied", &words)]).await;
    let again = sync(&shop, &source, Per::Ever, |units| units);
    refrain.replace_jobs(vec![again]).await.unwrap();
    refrain.unpark("sync#monday", "invoice:3").await.unwrap();
    ran(&refrain, "sync#monday").await;
    let failed: &[&str] = &["`invoice:3` of sync", "failed once", "attempt 2", retry];
    has_causes(&refrain, "invoice:3", &[("unit-failed", failed)]).await;
}

#[both_shops]
async fn x3_why_reports_a_wide_key_at_the_first_ignored_content<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(vec![invoice(1, 10)]);
    let refrain =
        opened(&shop, [sync(&shop, &source, Per::Ever, |units| units.on_change(OnChange::First))]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(vec![invoice(1, 11)]);
    ran(&refrain, "sync#tuesday").await;
    let wide: &[&str] = &["sync#tuesday", "first-wins, once", "invoice:1", "refrain trace invoice:1"];
    has_causes(&refrain, "sync#tuesday", &[("done", &[]), ("wide-key", wide)]).await;
    let met: &[&str] = &["`invoice:1`", "by sync#tuesday", "on-change = \"first\""];
    has_causes(&refrain, "invoice:1", &[("applied", &["by sync#monday"]), ("unit-deduplicated", met)]).await;
    source.shows(vec![invoice(7, 1), invoice(7, 2)]);
    ran(&refrain, "sync#friday").await;
    assert!(refrain.why("sync#friday").await.unwrap().names("wide-key"), "one key, two contents");
}

#[both_shops]
async fn x3_why_explains_late_content_and_an_effect_by_their_key<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of(vec![Invoice { updated: 5, ..invoice(1, 10) }]);
    let refrain =
        opened(&shop, [sync(&shop, &source, Per::Ever, |units| units.order(|one| one.updated))]).await;
    ran(&refrain, "sync#monday").await;
    source.shows(vec![Invoice { updated: 4, ..invoice(1, 9) }]);
    ran(&refrain, "sync#tuesday").await;
    let ledger = Ledger::open(&shop.pool, "shop", "sign-up").await.unwrap();
    let mut tx = shop.pool.begin().await.unwrap();
    ledger.intend(&mut tx, [Intent::effect("mail", key!("invoice", 1).unwrap(), 2).unwrap()]).await.unwrap();
    tx.commit().await.unwrap();
    refrain.tick().await.unwrap();
    let causes: [(&str, &[&str]); 3] = [
        ("applied", &["by sync#monday"]),
        ("unit-deduplicated", &["by sync#tuesday", "(stale)", "a lower order never overwrites"]),
        ("effect", &["`mail` about `invoice:1`, version 2, is pending"]),
    ];
    has_causes(&refrain, "invoice:1", &causes).await;
}

#[both_shops]
async fn units_of_a_renamed_job_are_found_under_its_new_name<DB: Backend>(shop: Shop<DB>) {
    let source = Source::of([invoices(2), vec![invoice(3, -1)]].concat());
    let before = opened(&shop, [sync(&shop, &source, Per::Ever, |units| units).retry(ONCE)]).await;
    ran(&before, "sync#monday").await;
    before.close().await;
    let renamed = sync(&shop, &source, Per::Ever, |units| units).retry(ONCE).named("import").unwrap();
    let refrain = opened(&shop, [renamed.formerly(vec![JobName::parse("sync").unwrap()])]).await;
    has_causes(&refrain, "invoice:1", &[("applied", &["of import", "by import#monday"])]).await;
    let retry = "refrain retry import#monday --unit invoice:3";
    has_causes(&refrain, "import#monday", &[("partial", &["parked: invoice:3", retry])]).await;
    assert_eq!(refrain.unpark("import#monday", "invoice:3").await.unwrap(), 1);
}

#[both_shops]
async fn h13_a_claimed_key_is_found_with_its_owner_and_advice<DB: Backend>(shop: Shop<DB>) {
    let gate = Gate::closed();
    let refrain = opened(&shop, [gate.job("export")]).await;
    refrain.enqueue("export", "acme:7", &()).await.unwrap();
    let running = tokio::spawn({
        let refrain = refrain.clone();
        async move { refrain.tick().await.unwrap() }
    });
    gate.have_begun(1).await;
    let holder = std::process::id().to_string();
    let words: &[&str] = &["export#acme:7", &holder, "since 20", "refrain cancel export#acme:7"];
    has_causes(&refrain, "acme:7", &[("running", words)]).await;
    refrain.cancel("export#acme:7").await.unwrap();
    running.await.unwrap();
    has_causes(&refrain, "acme:7", &[("cancelled", &["refrain retry export#acme:7"])]).await;
}
