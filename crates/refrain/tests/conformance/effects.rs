//! Effects of a program: once for a fact, with the receipt for everyone; every answer, every policy, every decision.

use std::time::Duration;

use refrain::core::state::{EffectState, InDoubtPolicy};
use refrain::core::{Key, Person};
use refrain::effects::{EffectRecord, EffectVerb, Performed};
use refrain::{EffectError, NotPerformed, Refrain};
use refrain_harness::TestDatabase;
use refrain_harness::eventually::DEADLINE;
use refrain_harness::every_store;
use refrain_harness::work::{Seen, is_sound, nothing, open};

const DAY: Duration = Duration::from_hours(24);

pub(crate) fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// What a receiver answers.
pub(crate) type Answer = Result<String, NotPerformed>;

/// Sends `mail:7`, and records the send.
pub(crate) async fn send(
    refrain: &Refrain,
    seen: &Seen,
    version: u32,
    answer: Answer,
) -> Result<Performed<String>, EffectError> {
    let effect = refrain.effect(key("mail:7")).version(version).wait(Duration::ZERO);
    let send = async |key: refrain::effects::EffectKey| {
        seen.push(format!("{}@{}", key.key, key.version));
        answer
    };
    effect.perform(send).await
}

pub(crate) fn receipt() -> String {
    "receipt".to_owned()
}

async fn effects(refrain: &Refrain) -> Vec<EffectRecord> {
    refrain.effects_of("mail:7").await.unwrap()
}

/// The states of the versions, the highest first.
pub(crate) async fn states(refrain: &Refrain) -> Vec<(u32, EffectState)> {
    effects(refrain).await.into_iter().map(|effect| (effect.version, effect.state)).collect()
}

pub(crate) async fn shop(database: &TestDatabase) -> Refrain {
    open(database, [nothing("welcome")]).await
}

/// The last message was sent longer ago than a message may be on its way.
async fn long_ago(database: &TestDatabase) {
    database.store("update refrain_effects set changed_at = changed_at - 61000000").await;
}

#[every_store]
async fn m8_the_second_caller_gets_the_receipt_of_the_first(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let first = send(&refrain, &seen, 1, Ok(receipt())).await.unwrap();
    let second = send(&refrain, &seen, 1, Ok("another".to_owned())).await.unwrap();
    assert_eq!((first.receipt.as_deref(), first.is_new), (Some("receipt"), true));
    assert_eq!((second.receipt.as_deref(), second.is_new), (Some("receipt"), false));
    assert_eq!(seen.all(), ["mail:7@1"]);
    let recorded = effects(&refrain).await;
    assert_eq!((recorded.len(), recorded[0].dedupes, recorded[0].sends), (1, 1, 1));
    is_sound(&refrain).await;
}

#[every_store]
async fn m8_fifty_callers_at_once_send_one_message(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let (refrain, seen) = (refrain.clone(), seen.clone());
        callers.spawn(async move {
            let effect = refrain.effect(key("mail:7")).wait(DEADLINE);
            let performed = effect
                .perform(async |_| {
                    seen.push("sent");
                    Ok::<_, NotPerformed>(7)
                })
                .await;
            performed.unwrap()
        });
    }
    let performed = callers.join_all().await;
    assert_eq!(seen.all(), ["sent"]);
    assert_eq!(performed.iter().filter(|one| one.is_new).count(), 1);
    assert!(performed.iter().all(|one| one.receipt == Some(7)), "each has the receipt");
    is_sound(&refrain).await;
}

#[every_store]
async fn a_message_that_was_not_sent_or_was_refused_is_sent_by_the_next_call(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let not_sent = send(&refrain, &seen, 1, Err(NotPerformed::not_sent("no such host"))).await;
    assert!(matches!(not_sent, Err(EffectError::NotSent { .. })), "{not_sent:?}");
    assert_eq!(states(&refrain).await, [(1, EffectState::Pending)]);
    let refused = send(&refrain, &seen, 1, Err(NotPerformed::refused("no such customer"))).await;
    assert!(matches!(refused, Err(EffectError::Refused { .. })), "{refused:?}");
    assert_eq!(states(&refrain).await, [(1, EffectState::Refused)]);
    assert!(send(&refrain, &seen, 1, Ok(receipt())).await.unwrap().is_new);
    assert_eq!((seen.all().len(), effects(&refrain).await[0].sends), (3, 3));
    is_sound(&refrain).await;
}

#[every_store]
async fn f8_an_error_of_the_sender_is_a_doubt_and_a_later_no_does_not_erase_it(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let lost = send(&refrain, &seen, 1, Err(std::io::Error::other("connection reset").into())).await;
    assert!(matches!(lost, Err(EffectError::InDoubt { .. })), "{lost:?}");
    let doubt = effects(&refrain).await[0].unanswered_at.unwrap();
    assert!(send(&refrain, &seen, 1, Ok(receipt())).await.is_err(), "nothing is sent again by itself");
    assert_eq!(seen.all().len(), 1);

    long_ago(&database).await;
    for answer in [NotPerformed::refused("no such customer"), NotPerformed::not_sent("no such host")] {
        let decided = refrain.decide_effect("mail:7", EffectVerb::Resend).await.unwrap();
        assert_eq!(decided.state, EffectState::Pending);
        assert!(send(&refrain, &seen, 1, Err(answer)).await.is_err());
        assert_eq!(states(&refrain).await, [(1, EffectState::InDoubt)], "the first message may have arrived");
        assert_eq!(effects(&refrain).await[0].unanswered_at, Some(doubt), "the doubt is as old as that one");
        long_ago(&database).await;
    }
    is_sound(&refrain).await;
}

#[every_store]
async fn m10_a_higher_version_is_sent_once_more_and_a_lower_one_is_a_dedupe(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    for version in [1, 2, 1, 2, 0] {
        send(&refrain, &seen, version, Ok(receipt())).await.unwrap();
    }
    assert_eq!(seen.all(), ["mail:7@1", "mail:7@2"]);
    assert_eq!(states(&refrain).await, [(2, EffectState::Confirmed), (1, EffectState::Confirmed)]);
    assert_eq!(effects(&refrain).await[0].dedupes, 3);
    is_sound(&refrain).await;
}

#[every_store]
async fn a_higher_version_waits_for_a_doubt_and_supersedes_what_was_not_sent(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::not_sent("no such host"))).await.is_err());
    assert!(send(&refrain, &seen, 2, Err(NotPerformed::unknown("no answer"))).await.is_err());
    assert_eq!(states(&refrain).await, [(2, EffectState::InDoubt), (1, EffectState::Suppressed)]);
    let waits = send(&refrain, &seen, 3, Ok(receipt())).await.unwrap_err().to_string();
    assert!(waits.contains("version 2 is in doubt"), "{waits}");
    refrain.decide_effect("mail:7@2", EffectVerb::Abandon).await.unwrap();
    assert!(send(&refrain, &seen, 3, Ok(receipt())).await.unwrap().is_new);
    assert_eq!(seen.all(), ["mail:7@1", "mail:7@2", "mail:7@3"]);
    let refused = refrain.decide_effect("mail:7@1", EffectVerb::Send).await.unwrap_err().to_string();
    assert!(refused.contains("version 1 is never sent") && refused.contains("mail:7@3"), "{refused}");
    is_sound(&refrain).await;
}

#[every_store]
async fn x2_each_policy_decides_about_a_doubt(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    for (policy, ttl, is_sent, state) in [
        (InDoubtPolicy::Hold, None, false, EffectState::InDoubt),
        (InDoubtPolicy::Probe, None, false, EffectState::InDoubt),
        (InDoubtPolicy::ProviderKey, None, false, EffectState::InDoubt),
        (InDoubtPolicy::ProviderKey, Some(Duration::from_secs(50)), false, EffectState::InDoubt),
        (InDoubtPolicy::ProviderKey, Some(DAY), true, EffectState::Confirmed),
        (InDoubtPolicy::AtLeastOnce, None, true, EffectState::Confirmed),
        (InDoubtPolicy::AtMostOnce, None, false, EffectState::Abandoned),
    ] {
        let name = format!("mail:{policy}:{ttl:?}");
        let effect = || {
            let effect = refrain.effect(key(&name)).in_doubt(policy);
            ttl.into_iter().fold(effect, refrain::effects::EffectRequestBuilder::provider_ttl)
        };
        assert!(effect().perform(async |_| Err::<u8, _>(NotPerformed::unknown("no answer"))).await.is_err());
        let again = effect().perform(async |_| {
            seen.push(&*name);
            Ok(1)
        });
        assert_eq!(again.await.is_ok(), is_sent, "{name}");
        assert_eq!(seen.all().contains(&name), is_sent, "{name}");
        assert_eq!(refrain.effects_of(&name).await.unwrap()[0].state, state, "{name}");
    }
    is_sound(&refrain).await;
}

#[every_store]
async fn f33_a_provider_that_may_have_forgotten_the_key_is_not_asked_again(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::unknown("no answer"))).await.is_err());
    database.store("update refrain_effects set first_sent_at = first_sent_at - 86350000000").await;
    long_ago(&database).await;
    refrain.decide_effect("mail:7", EffectVerb::Resend).await.unwrap();
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::unknown("no answer"))).await.is_err());
    // The last send is a moment ago, and the first one almost a day: the provider counts from that.
    let effect = refrain.effect(key("mail:7")).in_doubt(InDoubtPolicy::ProviderKey).provider_ttl(DAY);
    let held = effect.perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap_err().to_string();
    assert!(held.contains("may have forgotten the key"), "{held}");
    assert_eq!(states(&refrain).await, [(1, EffectState::InDoubt)]);
}

#[every_store]
async fn a_decision_follows_the_table_and_is_recorded(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let ada = refrain.by(Person::named("ada@office").unwrap().because("it is in the outbox").unwrap());
    let unknown = ada.decide_effect("mail:7", EffectVerb::Confirm).await.unwrap_err().to_string();
    assert!(unknown.contains("there is no effect `mail:7`"), "{unknown}");
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::unknown("no answer"))).await.is_err());

    let early = ada.decide_effect("mail:7", EffectVerb::Resend).await.unwrap_err();
    assert!(early.is_transient() && early.to_string().contains("may still arrive until"), "{early}");
    let refused = ada.decide_effect("mail:7", EffectVerb::Send).await.unwrap_err();
    assert!(refused.is_usage() && refused.to_string().contains("it may have been sent"), "{refused}");
    ada.decide_effect("mail:7@1", EffectVerb::Confirm).await.unwrap();
    let again = ada.decide_effect("mail:7", EffectVerb::Confirm).await.unwrap_err().to_string();
    assert!(again.contains("it is confirmed already"), "{again}");

    let performed = send(&refrain, &seen, 1, Ok(receipt())).await.unwrap();
    assert_eq!((performed.receipt, performed.is_new), (None, false), "its receipt is not known");
    let decided: Vec<_> = refrain
        .trace("mail:7")
        .await
        .unwrap()
        .decisions
        .into_iter()
        .map(|one| format!("{} {} {}: {}", one.who.unwrap(), one.verb, one.subject, one.why.unwrap()))
        .collect();
    assert_eq!(
        decided,
        ["ada@office confirm mail:7@1: it is in the outbox"],
        "a refused decision is not recorded"
    );
    is_sound(&refrain).await;
}

#[every_store]
async fn what_needs_an_operator_is_listed_by_state(database: TestDatabase) {
    let refrain = shop(&database).await;
    for (name, answer) in [
        ("a", NotPerformed::unknown("no answer")),
        ("b", NotPerformed::refused("no such customer")),
        ("c", NotPerformed::unknown("reset")),
        ("d", NotPerformed::not_sent("no such host")),
    ] {
        drop(refrain.effect(key(name)).named("mail").perform(async |_| Err::<u8, _>(answer)).await);
    }
    let listed = async |state| {
        let page = refrain.effects_in(state, None).await.unwrap();
        let last = page.last().cloned();
        let rest = match &last {
            Some(last) => refrain.effects_in(state, Some(last)).await.unwrap(),
            None => Vec::new(),
        };
        assert!(rest.is_empty(), "the page after the last one is empty");
        page.into_iter()
            .map(|one| format!("{} {} {}", one.key, one.name, one.message.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(EffectState::InDoubt).await, ["a mail no answer", "c mail reset"]);
    assert_eq!(listed(EffectState::Refused).await, ["b mail no such customer"]);
    assert_eq!(listed(EffectState::Suppressed).await, [""; 0]);
}

#[every_store]
async fn a_receipt_that_is_too_large_is_not_kept_and_the_effect_is_confirmed(database: TestDatabase) {
    let refrain = shop(&database).await;
    let large = "x".repeat(refrain::effects::RECEIPT_BYTES_MAX);
    let effect = || refrain.effect(key("mail:7"));
    let first = effect().perform(async |_| Ok::<_, NotPerformed>(large.clone())).await.unwrap();
    let second: Performed<String> =
        effect().perform(async |_| Ok::<_, NotPerformed>(String::new())).await.unwrap();
    assert_eq!((first.receipt, first.is_new), (Some(large), true));
    assert_eq!((second.receipt, second.is_new), (None, false));
}

#[tokio::test]
async fn a_transaction_of_the_caller_that_holds_the_file_is_a_named_error_and_nothing_is_sent() {
    let database = TestDatabase::sqlite().await;
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let TestDatabase::Sqlite { pool, .. } = &database else { unreachable!() };
    let own = pool.begin_with("begin immediate").await.unwrap();
    let busy = send(&refrain, &seen, 1, Ok(receipt())).await.unwrap_err();
    assert!(matches!(&busy, EffectError::Store(error) if error.is_transient()), "{busy}");
    assert!(seen.all().is_empty());
    own.commit().await.unwrap();
    assert!(send(&refrain, &seen, 1, Ok(receipt())).await.unwrap().is_new);
}

#[every_store]
async fn s9_a_message_of_a_receiver_is_cut_to_what_can_be_stored(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    let body = format!("a NUL \0 and {}", "x".repeat(1_000_000));
    let doubt = send(&refrain, &seen, 1, Err(NotPerformed::unknown(body))).await.unwrap_err();
    assert!(matches!(doubt, EffectError::InDoubt { .. }), "it is recorded");
    let kept = effects(&refrain).await[0].message.clone().unwrap();
    assert!(kept.len() < 5_000 && kept.starts_with("a NUL \u{fffd} and x"), "{} bytes", kept.len());
    let named = refrain.effect(key("mail:8")).named("No Name");
    let refused = named.perform(async |_| Ok::<u8, NotPerformed>(1)).await.unwrap_err();
    assert!(matches!(refused, EffectError::Store(_)), "{refused}");
}

#[every_store]
async fn a_doubt_that_is_sent_again_is_not_superseded_by_a_higher_version(database: TestDatabase) {
    let (refrain, seen) = (shop(&database).await, Seen::default());
    assert!(send(&refrain, &seen, 1, Err(NotPerformed::unknown("no answer"))).await.is_err());
    long_ago(&database).await;
    refrain.decide_effect("mail:7", EffectVerb::Resend).await.unwrap();
    let waits = send(&refrain, &seen, 2, Ok(receipt())).await.unwrap_err().to_string();
    assert!(waits.contains("version 1 is in doubt"), "{waits}");
    send(&refrain, &seen, 1, Ok(receipt())).await.unwrap();
    send(&refrain, &seen, 2, Ok(receipt())).await.unwrap();
    assert_eq!(seen.all(), ["mail:7@1", "mail:7@1", "mail:7@2"]);
}
