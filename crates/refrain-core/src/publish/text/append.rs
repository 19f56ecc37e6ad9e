//! Rows that are added once: `append-once`, whose keys are in the ledger, and `land`, whose rows carry what tells them apart.

use super::{Texts, literal};
use crate::project::Dialect;
use crate::publish::quoted;

impl Texts {
    /// The table of staged rows with their keys as one text.
    pub(super) fn keyed(&self) -> String {
        format!("{}_keyed", self.stage)
    }

    /// Makes and fills it.
    pub fn make_keyed(&self) -> Vec<String> {
        let (keyed, stage, key) = (self.keyed(), self.stage(), self.key_text("s"));
        let (kind, end) = match self.dialect {
            Dialect::Postgres => (" on commit drop", ""),
            Dialect::Sqlite => ("", " where true"),
        };
        let name = quoted(&keyed);
        let index = format!("create index {} on {name} (refrain_key)", quoted(&format!("{keyed}_key")));
        let index = match self.dialect {
            Dialect::Postgres => index,
            Dialect::Sqlite => {
                format!("create index temp.{} on {name} (refrain_key)", quoted(&format!("{keyed}_key")))
            }
        };
        vec![
            format!(
                "create temporary table {name}{kind} as select s.*, {key} as refrain_key from {stage} as s{end}"
            ),
            index,
        ]
    }

    /// Inserts the rows whose keys are not in a ledger; `units` is the ledger's table, `ledger` the place of its number, `target` what
    /// the table is called there.
    pub fn insert_new(&self, units: &str, ledger: &str, target: &str) -> String {
        let (table, into, values, keyed) = (self.table(), self.into(), self.values(), quoted(&self.keyed()));
        let key = entry(target);
        format!(
            "insert into {table} ({into}) select {values} from {keyed} as s where not exists \
             (select 1 from {units} as u where u.ledger = {ledger} and u.key = {key})"
        )
    }

    /// Records their keys: the places are those of the ledger's number, the fence, the version and the attempt.
    pub fn record_new(&self, units: &str, clock: &str, target: &str, places: [&str; 4]) -> String {
        let [ledger, fence, version, attempt] = places;
        let (keyed, key) = (quoted(&self.keyed()), entry(target));
        format!(
            "insert into {units} (ledger, key, fence, at, version, attempt, failures, written, status) \
             select {ledger}, {key}, {fence}, (select now from {clock}), {version}, {attempt}, 0, true, 'applied' \
             from {keyed} as s where true order by s.refrain_key on conflict (ledger, key) do nothing"
        )
    }

    /// Inserts the rows that are not there yet, by what tells them apart.
    pub fn insert_absent(&self) -> String {
        let (table, into, values, stage) = (self.table(), self.into(), self.values(), self.stage());
        let conflict = super::list(self.keys().map(quoted));
        format!(
            "insert into {table} ({into}) select {values} from {stage} as s where true on conflict ({conflict}) do nothing"
        )
    }
}

/// The key of a row in the ledger: a job may append to several tables.
fn entry(target: &str) -> String {
    format!("{} || s.refrain_key", literal(&format!("row:{target}:")))
}
