//! Numbers that are changed by the difference to what this window applied before: `apply-delta`.
//!
//! What was applied is in a table of its own, an amount for each ledger, target, key and column. A key that has vanished
//! counts as nothing, so its amount is taken back. What two spellings of one key come to is added up.

use super::{Texts, list, literal};
use crate::project::Dialect;
use crate::publish::quoted;

impl Texts {
    /// The table of differences.
    pub(super) fn change(&self) -> String {
        format!("{}_change", self.stage)
    }

    /// Makes it.
    pub fn make_change(&self, columns: &[String]) -> String {
        let keys = self.keys().map(|column| format!("t.{}", quoted(column)));
        let amounts = columns.iter().map(|column| format!("cast(null as numeric) as {}", quoted(column)));
        let key = "cast('' as text) as refrain_key".to_owned();
        self.temporary(&self.change(), &list(std::iter::once(key).chain(keys).chain(amounts)))
    }

    /// Fills it; the places are those of the ledger's number and of the target.
    pub fn fill_change(&self, columns: &[String], deltas: &str, places: [&str; 2]) -> String {
        let [ledger, target] = places;
        let (change, keyed) = (quoted(&self.change()), quoted(&self.keyed()));
        let keys = list(self.keys().map(quoted));
        let amounts = list(columns.iter().map(|column| quoted(column)));
        let own = |alias: &str, name: &str| {
            format!(
                "{alias}.ledger = {ledger} and {alias}.target = {target} and {alias}.name = {}",
                literal(name)
            )
        };
        let now = columns
            .iter()
            .enumerate()
            .map(|(at, column)| format!("s.{0} - coalesce(d{at}.amount, 0) as {0}", quoted(column)));
        let before: Vec<String> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let own = own(&format!("d{at}"), column);
                format!("left join {deltas} as d{at} on {own} and d{at}.key = s.refrain_key")
            })
            .collect();
        let back = columns.iter().map(|column| {
            let name = literal(column);
            format!("-sum(case when d.name = {name} then d.amount else 0 end) as {}", quoted(column))
        });
        let parsed =
            self.key.iter().enumerate().map(|(at, (_, kind))| self.parsed("g.refrain_key", at, kind));
        let differs: Vec<String> =
            columns.iter().map(|column| format!("sum(c.{}) <> 0", quoted(column))).collect();
        format!(
            "insert into {change} (refrain_key, {keys}, {amounts}) select min(c.refrain_key), {grouped}, {sums} from (\
             select s.refrain_key, {staged_keys}, {now} from {keyed} as s {before} \
             union all select g.refrain_key, {parsed}, {gone} from (\
             select d.key as refrain_key, {back} from {deltas} as d where d.ledger = {ledger} and d.target = {target} \
             and d.name in ({names}) and not exists (select 1 from {keyed} as s where s.refrain_key = d.key) \
             group by d.key) as g) as c group by {grouped} having {differs}",
            grouped = list(self.keys().map(|column| format!("c.{}", quoted(column)))),
            sums = list(columns.iter().map(|column| format!("sum(c.{})", quoted(column)))),
            staged_keys = list(self.keys().map(|column| format!("s.{}", quoted(column)))),
            now = list(now),
            before = before.join(" "),
            parsed = list(parsed),
            gone = list(columns.iter().map(|column| format!("g.{}", quoted(column)))),
            back = list(back),
            names = list(columns.iter().map(|column| literal(column))),
            differs = differs.join(" or "),
        )
    }

    fn parsed(&self, text: &str, at: usize, kind: &str) -> String {
        match self.dialect {
            Dialect::Postgres => format!("cast(cast({text} as json) ->> {at} as {kind})"),
            Dialect::Sqlite => format!("{text} ->> {at}"),
        }
    }

    /// Keys of the result, or of what is taken back, that the table has not.
    pub fn nowhere(&self) -> String {
        let (table, change, keyed) = (self.table(), quoted(&self.change()), quoted(&self.keyed()));
        let (same, keys) = (self.same_key("t", "c"), list(self.keys().map(quoted)));
        format!(
            "select count(*), min(c.refrain_key) from (select refrain_key, {keys} from {keyed} union \
             select refrain_key, {keys} from {change}) as c where not exists (select 1 from {table} as t where {same})"
        )
    }

    /// How many differences there are.
    pub fn changes(&self) -> String {
        format!("select count(*), cast(null as text) from {}", quoted(&self.change()))
    }

    /// Makes those rows, with nothing in them.
    pub fn insert_missing(&self, columns: &[String]) -> String {
        let (table, change, keyed) = (self.table(), quoted(&self.change()), quoted(&self.keyed()));
        let (same, names) = (self.same_key("t", "c"), list(self.keys().map(quoted)));
        let into = list(self.keys().chain(columns.iter().map(String::as_str)).map(quoted));
        let keys = self.keys().map(|column| format!("c.{}", quoted(column)));
        let values = list(keys.chain(columns.iter().map(|_| "0".to_owned())));
        format!(
            "insert into {table} ({into}) select {values} from (select {names} from {keyed} union select {names} from {change}) as c \
             where not exists (select 1 from {table} as t where {same})"
        )
    }

    /// Applies the differences.
    pub fn apply_change(&self, columns: &[String]) -> String {
        let (table, change) = (self.table(), quoted(&self.change()));
        let set =
            columns.iter().map(|column| format!("{0} = coalesce(target.{0}, 0) + c.{0}", quoted(column)));
        let same = self.same_key("target", "c");
        format!("update {table} as target set {} from {change} as c where {same}", list(set))
    }

    /// Remembers what is applied now, one column after the other; the places are those of the ledger's number and of the
    /// target.
    pub fn remember(&self, column: &str, deltas: &str, places: [&str; 2]) -> String {
        let [ledger, target] = places;
        let (keyed, name, amount) = (quoted(&self.keyed()), literal(column), quoted(column));
        format!(
            "insert into {deltas} as d (ledger, target, key, name, amount) select {ledger}, {target}, s.refrain_key, {name}, \
             s.{amount} from {keyed} as s where true order by s.refrain_key on conflict (ledger, target, key, name) \
             do update set amount = excluded.amount where d.amount <> excluded.amount"
        )
    }

    /// Forgets the amounts of keys that have vanished; they were taken back.
    pub fn forget(&self, column: &str, deltas: &str, places: [&str; 2]) -> String {
        let [ledger, target] = places;
        let (keyed, name) = (quoted(&self.keyed()), literal(column));
        format!(
            "delete from {deltas} as d where d.ledger = {ledger} and d.target = {target} and d.name = {name} \
             and not exists (select 1 from {keyed} as s where s.refrain_key = d.key)"
        )
    }
}
