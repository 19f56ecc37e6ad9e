//! The tests of twelve libraries and schedulers for a few hundred schedules, and our results.
//!
//! `tests/vectors/peers.tsv` has a line for each: source, expression, zone, an instant, what the peer's tests expect
//! after it (instants, `refused`, or `not` an instant), our result (`=` if it is the same), and why it differs. Only
//! facts, read from the suites. Where a peer has its own form for the zone, the year or the seconds, that was left
//! out or moved; where its test only expects that an expression is accepted, the instants are those that it means
//! there. `REFRAIN_BLESS=1` rewrites our results; a reason for each difference is written by hand.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::{SignedDuration, Timestamp};
use refrain_core::{Dst, Schedule, Zone};

use super::at;

/// One line of the table.
struct Case {
    source: String,
    expression: String,
    zone: String,
    from: String,
    peer: String,
    here: String,
    why: String,
}

impl Case {
    fn read(line: &str) -> Case {
        let columns: [&str; 7] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let [source, expression, zone, from, peer, here, why] = columns;
        let own = str::to_owned;
        Case {
            source: own(source),
            expression: expression.replace("\\t", "\t"),
            zone: own(zone),
            from: own(from),
            peer: own(peer),
            here: own(here),
            why: own(why),
        }
    }

    fn write(&self) -> String {
        let Case { source, expression, zone, from, peer, here, why } = self;
        [source, &expression.replace('\t', "\\t"), zone, from, peer, here, why].map(String::as_str).join("\t")
    }

    /// Our result, in the notation of the peer.
    fn found(&self) -> String {
        let Ok(schedule) = Schedule::parse(&self.expression) else { return "refused".to_owned() };
        let zone = Zone::parse(&self.zone).unwrap();
        let ticks = schedule.ticks(&zone, Dst::default());
        let from = at(&self.from);
        if let Some(not) = self.peer.strip_prefix("not ") {
            return if ticks.after(from) == Some(at(not)) { not.to_owned() } else { self.peer.clone() };
        }
        let count = self.peer.split(' ').count();
        let found: Vec<Timestamp> = ticks.between(from, Timestamp::MAX).take(count).collect();
        for tick in &found {
            assert_eq!(ticks.at_or_before(*tick), Some(*tick), "{} backwards", self.expression);
        }
        for (earlier, later) in found.iter().zip(found.iter().skip(1)) {
            let just_before = *later - SignedDuration::from_secs(1);
            assert_eq!(ticks.at_or_before(just_before), Some(*earlier), "{} backwards", self.expression);
        }
        found.iter().map(Timestamp::to_string).collect::<Vec<_>>().join(" ")
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/vectors/peers.tsv")
}

fn cases() -> Vec<Case> {
    std::fs::read_to_string(path()).unwrap().lines().map(Case::read).collect()
}

#[test]
fn f15_f16_the_tests_of_others_agree_or_the_difference_has_a_reason() {
    let mut cases = cases();
    let mut wrong = Vec::new();
    for case in &mut cases {
        let found = case.found();
        let found = if found == case.peer { "=".to_owned() } else { found };
        if found != case.here {
            let Case { source, expression, zone, from, peer, here, .. } = &*case;
            wrong.push(format!(
                "{source}: `{expression}` in {zone} after {from}\n  peer {peer}\n  here {here}\n  found {found}"
            ));
            case.here = found;
        }
    }
    if std::env::var_os("REFRAIN_BLESS").is_some() {
        let lines: Vec<String> = cases.iter().map(Case::write).collect();
        std::fs::write(path(), lines.join("\n") + "\n").unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{} cases:\n{}", wrong.len(), wrong.join("\n"));
    for case in &cases {
        assert_eq!(case.here == "=", case.why.is_empty(), "a difference has a reason: {}", case.write());
    }
}

#[test]
fn the_table_is_large_and_has_rows_from_every_peer() {
    let cases = cases();
    let mut sources: BTreeMap<&str, usize> = BTreeMap::new();
    for case in &cases {
        let name = case.source.split(' ').next().unwrap();
        *sources.entry(name).or_default() += 1;
    }
    assert_eq!(sources.len(), 11, "{sources:?}");
    let count = |is: fn(&Case) -> bool| cases.iter().filter(|case| is(case)).count();
    assert!(cases.len() > 700, "{}", cases.len());
    assert!(count(|case| case.zone != "UTC") > 300, "{}", count(|case| case.zone != "UTC"));
    assert!(count(|case| case.peer == "refused") > 200, "{}", count(|case| case.peer == "refused"));
    let agreeing = count(|case| case.here == "=");
    assert!(agreeing * 4 > cases.len() * 3, "{agreeing} of {}", cases.len());
}
