//! The verdict of a round: compares sources with rows, rows with the ledger, and the store with itself.
//!
//! The oracle trusts what was written outside of Refrain: the sources and the rows. The ledger is
//! checked against them, never the other way round.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

use crate::arena::Arena;
use crate::destination::Rows;
use crate::feeder::Feeder;
use crate::source::{Change, MARKED};
use crate::worker::{LEASE, PACKING, effect_of, key_of, open_options, recorded_steps};

/// Everything that is wrong.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// A content that was written more than once.
    pub(crate) duplicates: Vec<String>,
    /// A unit that is neither applied nor kept.
    pub(crate) lost: Vec<String>,
    /// Anything else.
    pub(crate) wrong: Vec<String>,
}

impl Findings {
    pub(crate) fn is_empty(&self) -> bool {
        self.duplicates.is_empty() && self.lost.is_empty() && self.wrong.is_empty()
    }
}

/// The current row, and all contents that were written to it, in order.
#[derive(Debug, Default)]
struct Item {
    standing: Option<(i64, i64, usize)>,
    written: Vec<i64>,
}

/// The ledger's record of a unit.
#[derive(Debug)]
struct Entry {
    is_applied: bool,
    order: i64,
    is_kept: bool,
}

type Name = (String, i64);

/// Judges a round after all its processes have ended. Returns how many contents were written. `is_last`: everything
/// was read, and nothing was refused.
pub(crate) async fn judge(
    store: &Rows,
    destination: &Rows,
    feeder: &Feeder,
    arena: &Arena,
    is_last: bool,
    findings: &mut Findings,
) -> usize {
    let (mut items, mut entries) = (BTreeMap::new(), HashMap::new());
    for rows in [store, destination] {
        read_items(rows, &mut items).await;
        read_entries(rows, &mut entries).await;
    }
    rows_are_written_once(&items, findings);
    ledger_and_rows_agree(&items, &entries, findings);
    let checkpoints: HashMap<String, String> = destination
        .rows::<2>("select name || ' ' || position from refrain_checkpoints")
        .await
        .into_iter()
        .map(|[name, position]| (name, position))
        .collect();
    for source in &feeder.sources {
        let position = checkpoints.get(source.name).map(String::as_str);
        checkpoint_passes_only_settled_units(&source.changes, position, &entries, findings);
    }
    let orders: Vec<Change> = feeder.orders().map(Change::order).collect();
    if is_last {
        for changes in feeder.sources.iter().map(|source| &source.changes).chain([&orders]) {
            rows_are_as_the_source(changes, &items, findings);
        }
    } else {
        let lost = orders.iter().filter(|order| !is_settled(order, &entries));
        findings.lost.extend(lost.map(|order| format!("order {} is neither applied nor kept", order.id)));
    }
    effects_match_the_written_rows(store, destination, &items, findings).await;
    runs_are_closed(store, feeder, is_last, findings).await;
    steps_are_done_once(&recorded_steps(&arena.own.directory), findings);
    let refrain = open_options(&arena.own, LEASE).await.unwrap().open().await.unwrap();
    findings.wrong.extend(crate::support::history::illegal(&refrain).await);
    let found = refrain.fsck().await.unwrap();
    findings.wrong.extend(found.into_iter().map(|found| format!("{} ({})", found.what, found.row)));
    refrain.close().await;
    items.values().map(|item| item.written.len()).sum()
}

async fn read_items(rows: &Rows, items: &mut BTreeMap<Name, Item>) {
    let number = |text: &String| text.parse::<i64>().unwrap();
    let standing = "select source || ' ' || cast(id as text) || ' ' || cast(seq as text) || ' '
        || cast(value as text) || ' ' || cast(writes as text) from items";
    for [source, id, seq, value, writes] in rows.rows::<5>(standing).await {
        let item: &mut Item = items.entry((source, number(&id))).or_default();
        item.standing = Some((number(&seq), number(&value), writes.parse().unwrap()));
    }
    let written =
        "select source || ' ' || cast(id as text) || ' ' || cast(seq as text) from writes order by number";
    for [source, id, seq] in rows.rows::<3>(written).await {
        items.entry((source, number(&id))).or_default().written.push(number(&seq));
    }
}

async fn read_entries(rows: &Rows, entries: &mut HashMap<String, Entry>) {
    let units = "select key || ' ' || status || ' ' || cast(coalesce(ordinal, -1) as text) || ' '
        || (case when input is null then 'gone' else 'kept' end) from refrain_units where key like 'item%'";
    for [key, status, order, kept] in rows.rows::<4>(units).await {
        let entry =
            Entry { is_applied: status == "applied", order: order.parse().unwrap(), is_kept: kept == "kept" };
        entries.insert(key, entry);
    }
}

fn rows_are_written_once(items: &BTreeMap<Name, Item>, findings: &mut Findings) {
    for ((source, id), item) in items {
        let mut seen = BTreeSet::new();
        for seq in &item.written {
            if !seen.insert(seq) {
                findings.duplicates.push(format!("{source} {id}: content {seq} was written again"));
            } else if seen.last() != Some(&seq) {
                findings.wrong.push(format!("{source} {id}: content {seq} was written over newer content"));
            }
        }
        let last = item.written.last().copied();
        if item.standing.map(|(seq, _, writes)| (seq, writes)) != last.map(|last| (last, item.written.len()))
        {
            findings
                .wrong
                .push(format!("{source} {id}: the row is {:?} after {:?}", item.standing, item.written));
        }
    }
}

fn ledger_and_rows_agree(
    items: &BTreeMap<Name, Item>,
    entries: &HashMap<String, Entry>,
    findings: &mut Findings,
) {
    let rows: HashMap<String, i64> = items
        .iter()
        .filter_map(|((source, id), item)| Some((key_of(source, *id).to_string(), item.standing?.0)))
        .collect();
    for key in rows.keys().filter(|key| !entries.contains_key(*key)) {
        findings.wrong.push(format!("{key} was written, and the ledger does not know"));
    }
    for (key, entry) in entries {
        let row = rows.get(key).copied();
        if entry.is_applied != (row == Some(entry.order)) || row > Some(entry.order) {
            findings.wrong.push(format!("{key}: the ledger says {entry:?}, the row {row:?}"));
        }
        if !entry.is_applied && !entry.is_kept {
            findings.lost.push(format!("{key} failed, and its input is not stored"));
        }
    }
}

fn is_settled(change: &Change, entries: &HashMap<String, Entry>) -> bool {
    let entry = entries.get(key_of(&change.source, change.id).as_str());
    entry.is_some_and(|entry| entry.order >= change.seq)
}

fn checkpoint_passes_only_settled_units(
    changes: &[Change],
    position: Option<&str>,
    entries: &HashMap<String, Entry>,
    findings: &mut Findings,
) {
    let Some(position) = position else { return };
    let is_passed = |change: &&Change| match position.parse::<i64>() {
        Ok(next) => change.seq < next,
        Err(_) => change.at <= position.parse::<Timestamp>().unwrap().as_microsecond(),
    };
    assert!(changes.iter().all(|change| (change.source == MARKED) != position.parse::<i64>().is_ok()));
    for change in changes.iter().filter(is_passed).filter(|change| !is_settled(change, entries)) {
        let Change { source, id, seq, .. } = change;
        findings
            .lost
            .push(format!("{source} {id}: content {seq} is behind the checkpoint {position}, unsettled"));
    }
}

fn rows_are_as_the_source(changes: &[Change], items: &BTreeMap<Name, Item>, findings: &mut Findings) {
    let newest: BTreeMap<Name, &Change> =
        changes.iter().map(|change| ((change.source.clone(), change.id), change)).collect();
    for (name, change) in newest {
        let row = items.get(&name).and_then(|item| item.standing).map(|(seq, value, _)| (seq, value));
        match row {
            Some(row) if row == (change.seq, change.value) => {}
            Some((seq, _)) if seq >= change.seq => {
                findings.wrong.push(format!("{change:?} should stand, and there is {row:?}"));
            }
            _ => findings.lost.push(format!("{change:?} is not there, but {row:?}")),
        }
    }
}

/// Every written row has its effect and no other effect exists; all intents have arrived.
async fn effects_match_the_written_rows(
    store: &Rows,
    destination: &Rows,
    items: &BTreeMap<Name, Item>,
    findings: &mut Findings,
) {
    let written = items.iter().flat_map(|((source, id), item)| {
        item.written.iter().map(|seq| effect_of(source, *id, *seq).to_string())
    });
    let written: BTreeSet<String> = written.collect();
    let effects: BTreeSet<String> =
        store.texts("select key from refrain_effects").await.into_iter().collect();
    findings.lost.extend(written.difference(&effects).map(|effect| format!("{effect} has no intent")));
    let strangers = effects.difference(&written);
    findings
        .wrong
        .extend(strangers.map(|effect| format!("{effect} is about a content that was not written")));
    for rows in [store, destination] {
        let left = rows.texts("select name || ' ' || key from refrain_intents").await;
        findings.lost.extend(left.into_iter().map(|intent| format!("the intent {intent} was not relayed")));
    }
}

async fn runs_are_closed(store: &Rows, feeder: &Feeder, is_last: bool, findings: &mut Findings) {
    let rows = store
        .rows::<3>(
            "select jobs.name || '#' || runs.key || ' ' || coalesce(runs.outcome, '-') || ' '
                 || (case when runs.open then 'open' else 'closed' end)
             from refrain_runs as runs join refrain_jobs as jobs on jobs.id = runs.job",
        )
        .await;
    let mut runs: HashMap<String, String> = HashMap::new();
    for [run, outcome, open] in rows {
        if open == "open" {
            findings.wrong.push(format!("{run} is open, and no worker executes it"));
        }
        if runs.insert(run.clone(), outcome).is_some() {
            findings.duplicates.push(format!("{run} exists twice"));
        }
    }
    for run in feeder.runs() {
        match runs.get(&run).map(String::as_str) {
            Some("done") => {}
            // Refused contents, and units that were in a batch when a process was killed, wait for the operator.
            Some("partial" | "failed") if run.starts_with("feed#") || run.starts_with("marked#") => {}
            Some("partial") if run.starts_with("order#") => {}
            None if run.starts_with(PACKING) && !is_last => {}
            other => findings.wrong.push(format!("{run} is {other:?}")),
        }
    }
}

/// Once a step is recorded as done, no later attempt begins it.
fn steps_are_done_once(lines: &[String], findings: &mut Findings) {
    let mut done: HashMap<(&str, &str), u64> = HashMap::new();
    for line in lines {
        let [word, run, step, attempt] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let attempt: u64 = attempt.parse().unwrap();
        match (word, done.get(&(run, step))) {
            ("done", _) => drop(done.insert((run, step), attempt)),
            (_, Some(before)) if attempt > *before => {
                findings.duplicates.push(format!("{run}: attempt {attempt} did {step} again after {before}"));
            }
            _ => {}
        }
    }
}
