//! One key, its whole life: in every database, job and effect. And a unit that is parked gets another chance.

use std::time::Duration;

use refrain::core::retry::{Backoff, Retry};
use refrain::core::state::{RunOutcome, UnitStatus};
use refrain::{Ask, Did, Error, Intent, JobError, Ledger, Per, key};

use crate::intents::opened;
use crate::shop::{Source, invoice, invoices, ran, sync};
use crate::support::work::{Seen, job};

const ONCE: Retry =
    Retry { attempts: 1, backoff: Backoff { min: Duration::from_millis(1), max: Duration::from_millis(1) } };

both_shops! {
    async fn a_key_is_found_in_every_job_effect_and_queue(shop) {
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
            ledger.intend(&mut tx, [Intent::effect("mail", key!("invoice", 1).unwrap(), 2).unwrap()]).await.unwrap();
            tx.commit().await.unwrap();
        }
        refrain.enqueue("welcome", "invoice:1", None).await.unwrap();
        refrain.tick().await.unwrap();

        let trace = refrain.trace("invoice:1").await.unwrap();
        let units: Vec<(&str, Option<&str>, UnitStatus)> =
            trace.units.iter().map(|unit| (unit.job.as_str(), unit.run.as_deref(), unit.status)).collect();
        let applied = UnitStatus::Applied;
        assert_eq!(units, [("mirror", Some("tuesday"), applied), ("sync", Some("monday"), applied)]);
        let tried: Vec<String> = trace.tried_by.iter().map(|run| format!("{}#{}", run.job, run.key)).collect();
        assert_eq!(tried, ["mirror#tuesday", "sync#monday"]);
        let [effect] = trace.effects.as_slice() else { panic!("{:?}", trace.effects) };
        assert_eq!((effect.name.as_str(), effect.version, effect.dedupes), ("mail", 2, 1));
        let [enqueued] = trace.enqueued.as_slice() else { panic!("{:?}", trace.enqueued) };
        assert!(enqueued.job == "welcome" && enqueued.standing.is_done());
        assert!(refrain.trace("invoice:3").await.unwrap().is_empty());
        assert!(matches!(refrain.trace("").await.unwrap_err(), Error::Parse(_)));
    }

    async fn a_parked_unit_is_given_another_chance_and_its_run_another_attempt(shop) {
        let source = Source::of([invoices(2), vec![invoice(3, -1)]].concat());
        let refrain = opened(&shop, [sync(&shop, &source, Per::Ever, |units| units).retry(ONCE)]).await;
        assert_eq!(ran(&refrain, "sync#monday").await, "monday partial 1");
        let [unit] = &refrain.trace("invoice:3").await.unwrap().units[..] else { panic!("one unit") };
        assert_eq!(unit.status, UnitStatus::Parked);
        assert!(unit.message.is_some() && unit.input.is_some());

        source.shows(Vec::new());
        shop.execute("alter table invoices rename to broken").await;
        shop.execute("create table invoices (id bigint primary key, total bigint not null, writes bigint not null)").await;
        assert_eq!(refrain.unpark("sync", "invoice:1").await.unwrap(), 0, "it is not parked");
        assert_eq!(refrain.unpark("sync", "invoice:3").await.unwrap(), 1);
        let report = refrain.retry("sync#monday").await.unwrap();
        assert_eq!((report.did, report.run.standing.outcome), (Did::Ran, Some(RunOutcome::Done)));
        assert_eq!(shop.totals().await, [-1], "only what failed is done again");
    }

    async fn what_is_done_or_never_was_is_not_tried_again(shop) {
        let flaky = job("flaky", |run| async move {
            if run.attempt() == 1 { Err(JobError::for_good("no")) } else { Ok(()) }
        });
        let refrain = opened(&shop, [flaky]).await;
        let refused = refrain.retry("flaky#1").await.unwrap_err();
        assert!(matches!(refused, Error::NoRun(_)), "{refused}");
        assert!(!refrain.run("flaky#1", Ask::Once).await.unwrap().is_done());
        assert!(refrain.retry("flaky#1").await.unwrap().is_done());
        let refused = refrain.retry("flaky#1").await.unwrap_err().to_string();
        assert!(refused.contains("done, by attempt 2") && refused.contains("refrain run flaky#1 --again"), "{refused}");
        refrain.enqueue("flaky", "2", None).await.unwrap();
        refrain.cancel("flaky#2").await.unwrap();
        assert!(refrain.retry("flaky#2").await.unwrap().is_done(), "someone wants it after all");
    }
}
