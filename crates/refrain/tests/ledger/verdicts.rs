//! Every kind of ledger row and every unit, judged by the rules of the core, both where the database decides (it
//! recognizes units that are certainly done) and where the judge does.

use refrain::core::state::{
    Applied, Arriving, DedupeReason, OnChange, Recorded, RefusedUnit, UnitDecision, UnitStatus,
};
use refrain::ledger::Per;
use refrain_harness::both_shops;

use crate::shop::{Backend, Invoice, Rules, Shop, Source, counts, dedupes, invoice, ran, sync};
use refrain_harness::work::open;

/// What is stored in the row of a unit that version 2 applied with the order 5.
struct Kind {
    status: &'static str,
    failures: i32,
    version: u32,
    is_other_content: bool,
    ordinal: Option<i64>,
    /// The version of the applied content beneath a failed try, and whether it is the arriving content.
    applied: Option<(u32, bool)>,
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    for status in ["applied", "failed", "parked"] {
        for failures in [0, -1] {
            for (version, is_other_content) in [(1, false), (1, true), (2, false), (2, true)] {
                for ordinal in [None, Some(4), Some(5), Some(6)] {
                    let beneath = [None, Some((1, true)), Some((2, true)), Some((2, false))];
                    for applied in beneath.into_iter().filter(|applied| {
                        // The row of applied content has no separate record of it, and no version is applied that was
                        // never tried.
                        applied.is_none_or(|(applied, _)| status != "applied" && applied <= version)
                    }) {
                        kinds.push(Kind { status, failures, version, is_other_content, ordinal, applied });
                    }
                }
            }
        }
    }
    kinds
}

impl Kind {
    fn decided(&self, order: Option<i64>) -> UnitDecision {
        let status = match self.status {
            // Parked in advance, by a run that killed no worker.
            _ if self.failures < 0 => UnitStatus::Failed(0),
            "applied" => UnitStatus::Applied,
            "parked" => UnitStatus::Parked,
            _ => UnitStatus::Failed(0),
        };
        let fingerprint = if self.is_other_content { "other" } else { "same" };
        let applied = self.applied.map(|(version, is_same)| Applied {
            version,
            fingerprint: if is_same { "same" } else { "another" },
        });
        let recorded = Recorded { version: self.version, fingerprint, order: self.ordinal, status, applied };
        Arriving { version: 2, fingerprint: "same", order }.decide(Some(&recorded), OnChange::Update)
    }

    async fn write<DB: Backend>(&self, shop: &Shop<DB>, id: i64) {
        let Kind { status, failures, version, is_other_content, ordinal, applied } = self;
        let ordinal = ordinal.map_or("null".to_owned(), |ordinal| ordinal.to_string());
        let other = i64::from(*is_other_content);
        let beneath = applied.map_or(String::new(), |(version, is_same)| {
            let other = if is_same { 0 } else { 2 };
            format!(
                ", applied_version = {version}, applied_fingerprint = fingerprint - {other}, applied_at = at"
            )
        });
        let update = format!(
            "update refrain_units set status = '{status}', failures = {failures}, version = {version},
             fingerprint = fingerprint - {other}, ordinal = {ordinal}{beneath} where key = 'invoice:{id}'"
        );
        assert_eq!(shop.database.store(&update).await, 1);
    }
}

#[both_shops]
async fn units_with_an_order_are_judged_by_the_rules_whatever_is_recorded<DB: Backend>(shop: Shop<DB>) {
    judged(&shop, Some(5), |units| units.order(|one: &Invoice| one.updated)).await;
}

#[both_shops]
async fn units_without_an_order_are_judged_by_the_rules_whatever_is_recorded<DB: Backend>(shop: Shop<DB>) {
    judged(&shop, None, |units| units).await;
}

async fn judged<DB: Backend>(shop: &Shop<DB>, order: Option<i64>, rules: Rules<DB>) {
    let kinds = kinds();
    let invoices = (1..).zip(&kinds).map(|(id, _)| Invoice { updated: 5, ..invoice(id, 10) });
    let source = Source::of(invoices.collect());
    let refrain = open(&shop.store, [sync(shop, &source, Per::Ever, rules).version(2)]).await;
    ran(&refrain, "sync#monday").await;
    for (id, kind) in (1..).zip(&kinds) {
        kind.write(shop, id).await;
    }
    ran(&refrain, "sync#tuesday").await;

    let decided: Vec<UnitDecision> = kinds.iter().map(|kind| kind.decided(order)).collect();
    let those = |wanted: UnitDecision| decided.iter().filter(|one| **one == wanted).count();
    let already = those(UnitDecision::Deduplicated(DedupeReason::AlreadyApplied));
    let stale = those(UnitDecision::Deduplicated(DedupeReason::Stale));
    let parked = those(UnitDecision::Refused(RefusedUnit::Parked));
    let is_applied = |one: &UnitDecision| matches!(one, UnitDecision::Fresh | UnitDecision::Changed);
    let writes: Vec<i64> = decided.iter().map(|one| if is_applied(one) { 2 } else { 1 }).collect();
    assert_eq!(shop.writes().await, writes);
    let applied = writes.iter().filter(|writes| **writes == 2).count();
    assert_eq!(
        counts(&refrain, "sync#tuesday").await,
        [applied, parked, already + stale, 0].map(|n| n as u64)
    );
    let open =
        shop.database.store_numbers("select count(*) from refrain_units where status <> 'applied'").await[0];
    let left = kinds.iter().zip(&decided).filter(|(kind, decided)| {
        let is_stale = **decided == UnitDecision::Deduplicated(DedupeReason::Stale);
        **decided == UnitDecision::Refused(RefusedUnit::Parked) || (is_stale && kind.status != "applied")
    });
    assert_eq!(usize::try_from(open).unwrap(), left.count(), "a failed try does not hide done content");
    let text: Vec<String> = dedupes(&refrain, "sync#tuesday").await;
    let text: Vec<&str> = text.iter().map(|line| line.split(" invoice").next().unwrap()).collect();
    let expected = [format!("already-applied {already}"), format!("stale {stale}")];
    assert_eq!(text, expected[..if stale > 0 { 2 } else { 1 }]);
    let lower = shop.database.store_numbers("select count(*) from refrain_units where ordinal < 5").await[0];
    let left = kinds.iter().zip(&decided).filter(|(kind, decided)| {
        kind.ordinal == Some(4)
            && (order.is_none() || **decided == UnitDecision::Refused(RefusedUnit::Parked))
    });
    assert_eq!(
        usize::try_from(lower).unwrap(),
        left.count(),
        "what is done has the highest order that it was seen with"
    );
}
