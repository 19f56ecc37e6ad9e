//! Senders of effects that are dropped, closed, lost or taken over: what they held is in doubt, and no key is stuck.

use refrain::core::state::EffectState;
use refrain::effects::EffectVerb;
use refrain::{EffectError, NotPerformed};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::every_store;
use refrain_harness::work::{Gate, Seen, is_sound};

use crate::effects::{key, receipt, send, shop, states};

#[every_store]
async fn f7_a_caller_that_is_dropped_or_panics_leaves_a_doubt(database: TestDatabase) {
    let refrain = shop(&database).await;
    let gate = Gate::closed();
    let waiting = tokio::spawn({
        let (refrain, gate) = (refrain.clone(), gate.clone());
        async move {
            let effect = refrain.effect(key("mail:7"));
            drop(
                effect
                    .perform(async |_| {
                        gate.pass().await;
                        Ok::<_, NotPerformed>(7)
                    })
                    .await,
            );
        }
    });
    gate.have_begun(1).await;
    waiting.abort();
    let is_doubted = async || states(&refrain).await == [(1, EffectState::InDoubt)];
    eventually("the dropped send is in doubt", DEADLINE, is_doubted).await;

    let panicking = tokio::spawn({
        let refrain = refrain.clone();
        async move {
            let sent = refrain
                .effect(key("mail:8"))
                .perform(async |_| -> Result<u8, NotPerformed> { panic!("a bug") });
            drop(sent.await);
        }
    });
    assert!(panicking.await.unwrap_err().is_panic());
    let is_doubted = async || refrain.effects_of("mail:8").await.unwrap()[0].state == EffectState::InDoubt;
    eventually("so is the one whose caller panicked", DEADLINE, is_doubted).await;
    is_sound(&refrain).await;
}

#[every_store]
async fn an_effect_whose_worker_was_removed_by_an_older_release_is_in_doubt(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::not_sent("no such host"))).await.is_err());
    database.store("update refrain_effects set state = 'reserved', holder = 999, sends = sends + 1").await;
    let waits = refrain.effect(key("mail:7")).wait(DEADLINE);
    let doubt = waits.perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap_err();
    assert!(matches!(doubt, EffectError::InDoubt { .. }), "{doubt}");
    is_sound(&refrain).await;
}

#[every_store]
async fn a_takeover_leaves_the_effects_of_other_workers_alone(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    refrain.effect(key("mail:8")).perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap();
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::not_sent("no such host"))).await.is_err());
    database.store("update refrain_effects set state = 'reserved', holder = 999 where key = 'mail:7'").await;
    let waits = refrain.effect(key("mail:7")).wait(DEADLINE);
    assert!(waits.perform(async |_| Ok::<u8, NotPerformed>(1)).await.is_err());
    assert_eq!(refrain.effects_of("mail:8").await.unwrap()[0].state, EffectState::Confirmed);
}

#[every_store]
async fn a_closed_process_removes_its_worker_and_doubts_what_it_was_sending(database: TestDatabase) {
    let (refrain, other) = (shop(&database).await, shop(&database).await);
    let gate = Gate::closed();
    let sending = tokio::spawn({
        let (refrain, gate) = (refrain.clone(), gate.clone());
        async move {
            let sent = refrain.effect(key("mail:7")).perform(async |_| {
                gate.pass().await;
                Ok::<_, NotPerformed>(7)
            });
            drop(sent.await);
        }
    });
    gate.have_begun(1).await;
    refrain.close().await;
    let waits = other.effect(key("mail:7")).wait(DEADLINE);
    let doubt = waits.perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap_err();
    assert!(matches!(doubt, EffectError::InDoubt { .. }), "{doubt}");
    sending.abort();
    is_sound(&other).await;
}

#[every_store]
async fn f7_an_answer_that_cannot_be_recorded_becomes_a_doubt_and_not_a_key_that_is_stuck(
    database: TestDatabase,
) {
    let refrain = shop(&database).await;
    let sent = refrain.effect(key("mail:7")).perform(async |_| {
        // Its worker is taken for silent, and the store has forgotten it.
        database.store("update refrain_workers set expires_at = 0, process = 'elsewhere/1/1/1'").await;
        database.store("update refrain_effects set holder = holder + 1000").await;
        Err::<u8, _>(NotPerformed::not_sent("no such host"))
    });
    assert!(sent.await.is_err());
    let waits = refrain.effect(key("mail:7")).wait(DEADLINE);
    let doubt = waits.perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap_err();
    assert!(matches!(doubt, EffectError::InDoubt { .. }), "{doubt}");
}

#[every_store]
async fn a_caller_whose_worker_was_lost_sends_under_another_one(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    refrain.effect(key("mail:8")).perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap();
    database.store("update refrain_workers set expires_at = 0").await;
    assert!(send(&refrain, &seen, 1, Ok(receipt())).await.unwrap().is_new);
}

#[every_store]
async fn nothing_is_decided_about_an_effect_while_it_is_being_sent(database: TestDatabase) {
    let refrain = shop(&database).await;
    let gate = Gate::closed();
    let sending = tokio::spawn({
        let (refrain, gate) = (refrain.clone(), gate.clone());
        async move {
            let sent = refrain.effect(key("mail:7")).perform(async |_| {
                gate.pass().await;
                Err::<u8, _>(NotPerformed::not_sent("no such host"))
            });
            sent.await.unwrap_err().to_string()
        }
    });
    gate.have_begun(1).await;
    for verb in [EffectVerb::Confirm, EffectVerb::Resend, EffectVerb::Abandon, EffectVerb::Send] {
        let refused = refrain.decide_effect("mail:7", verb).await.unwrap_err();
        assert!(refused.is_transient() && refused.to_string().contains("is being sent now"), "{refused}");
    }
    gate.let_through(1);
    assert!(sending.await.unwrap().contains("was not sent"));
    assert_eq!(states(&refrain).await, [(1, EffectState::Pending)]);
}
