//! Single claims and steps that share a commit: each gets its own result.

use refrain_harness::both_shops;
use std::collections::BTreeMap;

use refrain::ledger::LedgerError;
use refrain::{Claim, Definition, Ledger, key};
use tokio::task::JoinSet;

use crate::fences::take_over;
use crate::shop::{Backend, Shop, counts, ran, work};
use refrain_harness::work::{Gate, Seen, job, open};

const TASKS: usize = 64;
const KEYS: usize = 50;

/// Every task claims every key, each in an order of its own. Returns how often each key was free.
async fn all_claim<DB: Backend>(ledgers: &[Ledger<DB>]) -> BTreeMap<usize, usize> {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let ledger = ledgers[task % ledgers.len()].clone();
        tasks.spawn(async move {
            let mut fresh = Vec::new();
            for step in 0..KEYS {
                let key = (task * 7 + step) % KEYS;
                if ledger.claim_alone(key!("mail", key).unwrap()).await.unwrap() == Claim::Fresh {
                    fresh.push(key);
                }
            }
            fresh
        });
    }
    let mut times = BTreeMap::new();
    for key in tasks.join_all().await.into_iter().flatten() {
        *times.entry(key).or_default() += 1;
    }
    times
}

/// A run for each key, with one step that ends when the gate lets it through.
fn stepping(gate: &Gate, seen: &Seen) -> Definition {
    let (gate, seen) = (gate.clone(), seen.clone());
    job("sync", move |run| {
        let (gate, seen) = (gate.clone(), seen.clone());
        async move {
            let Some(step) = run.step("download").await? else { return Ok(()) };
            if run.attempt() == 1 {
                gate.pass().await;
            }
            let went = step.done().await;
            seen.push(match &went {
                Ok(()) => format!("{} {} done", run.key(), run.attempt()),
                Err(LedgerError::Fenced { .. }) => format!("{} {} fenced", run.key(), run.attempt()),
                Err(error) => error.to_string(),
            });
            Ok(went?)
        }
    })
}

/// The table refuses the second mail.
fn unwritable(is_sqlite: bool) -> &'static str {
    if is_sqlite {
        "create trigger second before insert on refrain_units when new.key = 'mail:2'
         begin select raise(abort, 'no second mail'); end"
    } else {
        "create function second() returns trigger language plpgsql as $$ begin raise exception 'no \
         second mail'; end $$;
         create trigger second before insert on refrain_units for each row when (new.key = 'mail:2') \
         execute function second()"
    }
}

#[both_shops]
async fn each_key_is_claimed_by_one_of_64_tasks<DB: Backend>(shop: Shop<DB>) {
    let ledger = Ledger::open(&shop.pool, "shop", "mails").await.unwrap();
    let times = all_claim(&[ledger]).await;
    assert_eq!((times.len(), times.values().max()), (KEYS, Some(&1)));
}

#[both_shops]
async fn each_key_is_claimed_by_one_of_64_tasks_with_separate_ledgers<DB: Backend>(shop: Shop<DB>) {
    let crowd = DB::crowd(&shop.pool).await.unwrap();
    let mut ledgers = Vec::new();
    for _ in 0..8 {
        ledgers.push(Ledger::open(&crowd, "shop", "mails").await.unwrap());
    }
    let times = all_claim(&ledgers).await;
    assert_eq!((times.len(), times.values().max()), (KEYS, Some(&1)));
    crowd.close().await;
}

#[both_shops]
async fn a_done_step_is_not_repeated_by_the_next_attempt<DB: Backend>(shop: Shop<DB>) {
    let seen = Seen::default();
    let text = seen.clone();
    let stepping = work(&shop, "sync", move |run, _| {
        let seen = text.clone();
        async move {
            for name in ["download", "unpack", "load"] {
                let Some(step) = run.step(name).await? else { continue };
                seen.push(format!("{name} {}", run.attempt()));
                if name == "unpack" && run.key() == "monday" && run.attempt() == 1 {
                    return Err(LedgerError::Contended);
                }
                step.done().await?;
            }
            Ok(())
        }
    });
    let refrain = open(&shop.store, [stepping]).await;
    assert_eq!(ran(&refrain, "sync#monday").await, "monday due 2");
    assert_eq!(ran(&refrain, "sync#monday").await, "monday done 2");
    assert_eq!(seen.all(), ["download 1", "unpack 1", "unpack 2", "load 2"]);
    assert_eq!(counts(&refrain, "sync#monday").await, [2, 0, 1, 0]);
    assert_eq!(ran(&refrain, "sync#tuesday").await, "tuesday done 1", "another run has steps of its own");
    assert_eq!(seen.all().len(), 7);
}

#[both_shops]
async fn a_claim_that_fails_does_not_affect_the_rest_of_its_group<DB: Backend>(shop: Shop<DB>) {
    let ledger = Ledger::open(&shop.pool, "shop", "mails").await.unwrap();
    shop.database.store(unwritable(DB::IS_SQLITE)).await;
    let claim = |number: i32| ledger.claim_alone(key!("mail", number).unwrap());
    let (one, two, three) = tokio::join!(claim(1), claim(2), claim(3));
    assert_eq!((one.unwrap(), three.unwrap()), (Claim::Fresh, Claim::Fresh));
    let refused = two.unwrap_err().to_string();
    assert!(refused.contains("no second mail"), "{refused}");
}

#[both_shops]
async fn i5_a_fenced_claim_does_not_affect_the_rest_of_its_group<DB: Backend>(shop: Shop<DB>) {
    let (gate, seen) = (Gate::closed(), Seen::default());
    let old = open(&shop.store, [stepping(&gate, &seen)]).await;
    let new = open(&shop.store, [stepping(&gate, &seen)]).await;
    let runs: Vec<_> = (0..12)
        .map(|number| {
            let old = old.clone();
            tokio::spawn(async move { ran(&old, &format!("sync#{number:02}")).await })
        })
        .collect();
    gate.have_begun(12).await;
    take_over(&shop.store, "07").await;
    assert_eq!(ran(&new, "sync#07").await, "07 done 2");
    gate.let_through(12);
    for run in runs {
        run.await.unwrap();
    }
    let mut text = seen.all();
    text.sort();
    let mut expected: Vec<String> = (0..12).map(|number| format!("{number:02} 1 done")).collect();
    expected[7] = String::from("07 1 fenced");
    expected.insert(8, "07 2 done".to_owned());
    assert_eq!(text, expected);
}
