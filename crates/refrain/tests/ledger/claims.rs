//! Claims: once per key, inside the program's own transaction, whose commit is the record.

use refrain::core::state::RefusedUnit;
use refrain::error::DatabaseError;
use refrain::ledger::{BatchError, LedgerError, Per};
use refrain::{Claim, Ledger, key};
use refrain_harness::both_shops;
use serde_json::{Value, json};
use sqlx::Executor;
use tokio::task::JoinSet;

use crate::shop::{Backend, Shop, invoice, key_of, ran, work};
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::work::open;

async fn ledger<DB: Backend>(shop: &Shop<DB>) -> Ledger<DB> {
    Ledger::open(&shop.pool, "shop", "digests").await.unwrap()
}

#[both_shops]
async fn a_claimed_key_is_done_for_ever_once_its_transaction_commits<DB: Backend>(shop: Shop<DB>) {
    let ledger = ledger(&shop).await;
    for round in 0..3 {
        let mut tx = shop.pool.begin().await.unwrap();
        match ledger.claim(&mut tx, key!("digest", "acme").unwrap()).await.unwrap() {
            Claim::Fresh => DB::write(&mut tx, &invoice(1, 10)).await.unwrap(),
            Claim::Done(past) => {
                assert!(round > 0 && past.run.is_none() && past.at <= jiff::Timestamp::now());
            }
        }
        tx.commit().await.unwrap();
    }
    assert_eq!(shop.writes().await, [1]);
}

#[both_shops]
async fn f1_a_claim_that_is_rolled_back_leaves_the_key_free<DB: Backend>(shop: Shop<DB>) {
    let ledger = ledger(&shop).await;
    for _ in 0..2 {
        let mut tx = shop.pool.begin().await.unwrap();
        assert!(ledger.claim(&mut tx, key!("digest", "acme").unwrap()).await.unwrap().is_fresh());
        DB::write(&mut tx, &invoice(1, 10)).await.unwrap();
        tx.rollback().await.unwrap();
    }
    assert_eq!((shop.writes().await, shop.count_of("applied").await), (Vec::new(), 0));
}

#[both_shops]
async fn a_second_claim_waits_and_succeeds_if_the_first_rolls_back<DB: Backend>(shop: Shop<DB>) {
    for (is_committed, is_fresh) in [(false, true), (true, false)] {
        let (ledger, crowd) = (ledger(&shop).await, DB::crowd(&shop.pool).await.unwrap());
        let mut winner = crowd.begin().await.unwrap();
        let name = move || key!("digest", i32::from(is_committed)).unwrap();
        assert!(ledger.claim(&mut winner, name()).await.unwrap().is_fresh());
        let second = tokio::spawn({
            let (ledger, crowd) = (ledger.clone(), crowd.clone());
            async move {
                let mut tx = crowd.begin().await.unwrap();
                let claim = ledger.claim(&mut tx, name()).await.unwrap();
                tx.commit().await.unwrap();
                claim.is_fresh()
            }
        });
        if !DB::IS_SQLITE {
            let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'
                    and datname = current_database() and query like 'insert into refrain.units%'";
            eventually("the second waits", DEADLINE, async || shop.numbers(waiting).await == [1]).await;
        }
        if is_committed {
            winner.commit().await.unwrap();
        } else {
            winner.rollback().await.unwrap();
        }
        assert_eq!(second.await.unwrap(), is_fresh);
        crowd.close().await;
    }
}

#[both_shops]
async fn one_of_many_simultaneous_claims_of_a_key_succeeds<DB: Backend>(shop: Shop<DB>) {
    let (ledger, crowd) = (ledger(&shop).await, DB::crowd(&shop.pool).await.unwrap());
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        let (ledger, crowd) = (ledger.clone(), crowd.clone());
        tasks.spawn(async move {
            let mut tx = crowd.begin().await.unwrap();
            let claim = ledger.claim(&mut tx, key!("digest", task % 4).unwrap()).await.unwrap();
            if claim.is_fresh() {
                DB::write(&mut tx, &invoice(task % 4, 10)).await.unwrap();
            }
            tx.commit().await.unwrap();
            usize::from(claim.is_fresh())
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 4);
    assert_eq!(shop.writes().await, [1, 1, 1, 1]);
    crowd.close().await;
}

#[both_shops]
async fn a_key_under_which_a_unit_failed_is_neither_free_nor_done<DB: Backend>(shop: Shop<DB>) {
    let failing = work(&shop, "digests", |run, pool| async move {
        let units = run.fence(&pool).await?.units(Per::Ever, key_of);
        let list = [invoice(1, 1)];
        let mut batches = units.apply(&list).await?;
        while let Some(batch) = batches.next().await? {
            batch.settle(Err::<(), _>(BatchError::new("no"))).await?;
        }
        Ok(())
    });
    ran(&open(&shop.store, [failing]).await, "digests#one").await;
    let ledger = Ledger::open(&shop.pool, "shop", "digests").await.unwrap();
    let mut tx = shop.pool.begin().await.unwrap();
    let claim = ledger.claim(&mut tx, key!("invoice", 1).unwrap()).await;
    assert!(matches!(&claim, Err(LedgerError::NotApplied { key }) if key == "invoice:1"), "{claim:?}");
}

#[both_shops]
async fn names_and_projects_do_not_see_each_other<DB: Backend>(shop: Shop<DB>) {
    for (project, name) in [("shop", "digests"), ("shop", "mails"), ("other", "digests")] {
        let ledger = Ledger::open(&shop.pool, project, name).await.unwrap();
        for is_fresh in [true, false] {
            let mut tx = shop.pool.begin().await.unwrap();
            let claim = ledger.claim(&mut tx, key!("digest", "acme").unwrap()).await.unwrap();
            assert_eq!(claim.is_fresh(), is_fresh, "{project} {name}");
            tx.commit().await.unwrap();
        }
    }
}

#[both_shops]
async fn f35_the_same_key_with_other_content_is_an_error_and_nothing_runs<DB: Backend>(shop: Shop<DB>) {
    let ledger = ledger(&shop).await;
    let contents = [
        json!({"a": 1, "b": [1, 2]}),
        json!({"a": 1, "b": [2, 1]}),
        json!({"a": "1", "b": [1, 2]}),
        json!(null),
        json!(""),
        json!([]),
        json!({}),
        json!(0),
        json!(0.5),
        json!("0"),
        json!({"a": null}),
    ];
    for (at, first) in contents.iter().enumerate() {
        for (other, second) in contents.iter().enumerate() {
            let name = || key!("payment", at, other).unwrap();
            let mut tx = shop.pool.begin().await.unwrap();
            assert!(ledger.claim_content(&mut tx, name(), first).await.unwrap().is_fresh());
            tx.commit().await.unwrap();
            let mut tx = shop.pool.begin().await.unwrap();
            let claim = ledger.claim_content(&mut tx, name(), second).await;
            match claim {
                Ok(Claim::Done(_)) => assert_eq!(at, other, "{first} {second}"),
                Err(LedgerError::Refused { key, reason: RefusedUnit::OtherContent }) => {
                    assert!(at != other && key == name().to_string(), "{first} {second}");
                }
                claim => panic!("{claim:?}"),
            }
            tx.rollback().await.unwrap();
        }
    }
    let mut tx = shop.pool.begin().await.unwrap();
    let reordered: Value = serde_json::from_str("{\"b\": [1.0, 2e0],\n \"a\": 1}").unwrap();
    let claim = ledger.claim_content(&mut tx, key!("payment", 0, 0).unwrap(), &reordered).await.unwrap();
    assert!(!claim.is_fresh(), "the same content in another notation");
}

/// In a transaction with a higher isolation level, a claim that lost to an invisible one is an error that asks to
/// begin again; then the winner is visible.
#[tokio::test]
async fn f47_a_claim_in_a_serializable_transaction_is_tried_again_by_its_caller() {
    let shop = Shop::on_a_server().await;
    let ledger = ledger(&shop).await;
    for level in ["repeatable read", "serializable"] {
        let begin = || sqlx::AssertSqlSafe(format!("begin isolation level {level}"));
        let mut late = shop.pool.begin_with(begin()).await.unwrap();
        late.execute("select count(*) from invoices").await.unwrap();
        let mut winner = shop.pool.begin().await.unwrap();
        assert!(ledger.claim(&mut winner, key!("digest", level).unwrap()).await.unwrap().is_fresh());
        winner.commit().await.unwrap();
        let error = ledger.claim(&mut late, key!("digest", level).unwrap()).await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert!(matches!(error, LedgerError::Database(DatabaseError::Busy(_))), "{error}");
        late.rollback().await.unwrap();
        let mut again = shop.pool.begin_with(begin()).await.unwrap();
        assert!(!ledger.claim(&mut again, key!("digest", level).unwrap()).await.unwrap().is_fresh());
    }
}
