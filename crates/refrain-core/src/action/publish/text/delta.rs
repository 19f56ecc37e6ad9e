//! `apply-delta`: numbers change by the difference to the amounts that this window applied before.
//!
//! Applied amounts are kept in a table of their own, one for each ledger, target, key and column. A key that has vanished
//! from the result counts as zero, so its amount is taken back. The amounts of two spellings of one key are added up.

use super::names::{AMOUNT, CHANGE, FOUND, GONE, KEY, ROW, TARGET};
use super::{TableStatements, list};
use crate::project::Dialect;
use crate::publish::quoted;

impl TableStatements {
    /// The table of differences.
    pub(super) fn change(&self) -> String {
        format!("{}:change", self.stage)
    }

    /// Creates it.
    pub fn make_change(&self, columns: &[String]) -> String {
        let keys = self.keys().map(|column| format!("{TARGET}.{}", quoted(column)));
        let amounts = columns.iter().map(|column| format!("cast(null as numeric) as {}", quoted(column)));
        let key = format!("{} as {KEY}", self.as_text("''"));
        self.temporary(&self.change(), &list(std::iter::once(key).chain(keys).chain(amounts)))
    }

    /// Fills it. Parameters: the number of the ledger and the target.
    pub fn fill_change(&self, columns: &[String], deltas: &str, places: [&str; 2]) -> String {
        let (change, keyed) = (quoted(&self.change()), quoted(&self.keyed()));
        let [sum, min] = ["sum", "min"].map(|name| self.built_in(name));
        let keys = list(self.keys().map(quoted));
        let amounts = list(columns.iter().map(|column| quoted(column)));
        let before = |at: usize| quoted(&format!("refrain:amount:{at}"));
        let now = columns.iter().enumerate().map(|(at, column)| {
            format!("{ROW}.{0} - coalesce({1}.amount, 0) as {0}", quoted(column), before(at))
        });
        let joined = columns.iter().enumerate().map(|(at, column)| {
            let (amount, own) = (before(at), self.own_amount(&before(at), column, places));
            format!("left join {deltas} as {amount} on {own} and {amount}.key = {ROW}.{KEY}")
        });
        let parsed = self.key.iter().enumerate();
        let parsed = parsed.map(|(at, (_, kind))| self.parsed(&format!("{GONE}.{KEY}"), at, kind));
        let differs = columns.iter().map(|column| format!("{sum}({FOUND}.{}) <> 0", quoted(column)));
        format!(
            "insert into {change} ({KEY}, {keys}, {amounts}) select {min}({FOUND}.{KEY}), {grouped}, {sums} from (\
             select {ROW}.{KEY}, {staged_keys}, {now} from {keyed} as {ROW} {joined} \
             union all select {GONE}.{KEY}, {parsed}, {gone} from ({vanished}) as {GONE}\
             ) as {FOUND} group by {grouped} having {differs}",
            grouped = list(self.keys().map(|column| format!("{FOUND}.{}", quoted(column)))),
            sums = list(columns.iter().map(|column| format!("{sum}({FOUND}.{})", quoted(column)))),
            staged_keys = list(self.keys().map(|column| format!("{ROW}.{}", quoted(column)))),
            now = list(now),
            joined = joined.collect::<Vec<_>>().join(" "),
            parsed = list(parsed),
            gone = list(columns.iter().map(|column| format!("{GONE}.{}", quoted(column)))),
            vanished = self.vanished(columns, deltas, places),
            differs = differs.collect::<Vec<_>>().join(" or "),
        )
    }

    /// The condition for the amounts of this ledger, target and column.
    fn own_amount(&self, amount: &str, column: &str, places: [&str; 2]) -> String {
        let ([ledger, target], name) = (places, self.literal(column));
        format!("{amount}.ledger = {ledger} and {amount}.target = {target} and {amount}.name = {name}")
    }

    /// The amounts of keys that the result no longer has, negated.
    fn vanished(&self, columns: &[String], deltas: &str, places: [&str; 2]) -> String {
        let ([ledger, target], keyed) = (places, quoted(&self.keyed()));
        let sum = self.built_in("sum");
        let back = columns.iter().map(|column| {
            let (name, column) = (self.literal(column), quoted(column));
            format!("-{sum}(case when {AMOUNT}.name = {name} then {AMOUNT}.amount else 0 end) as {column}")
        });
        let (back, names) = (list(back), list(columns.iter().map(|column| self.literal(column))));
        format!(
            "select {AMOUNT}.key as {KEY}, {back} from {deltas} as {AMOUNT} where {AMOUNT}.ledger = {ledger} \
             and {AMOUNT}.target = {target} and {AMOUNT}.name in ({names}) \
             and not exists (select 1 from {keyed} as {ROW} where {ROW}.{KEY} = {AMOUNT}.key) group by {AMOUNT}.key"
        )
    }

    fn parsed(&self, text: &str, at: usize, kind: &str) -> String {
        match self.dialect {
            Dialect::Postgres => {
                format!("cast(cast({text} as {}) ->> {at} as {kind})", self.built_in("json"))
            }
            Dialect::Sqlite => format!("{text} ->> {at}"),
        }
    }

    /// Finds keys, of the result or of amounts that are taken back, that do not exist in the table.
    pub fn nowhere(&self) -> String {
        let (table, change, keyed) = (self.table(), quoted(&self.change()), quoted(&self.keyed()));
        let [count, min] = ["count", "min"].map(|name| self.built_in(name));
        let same = self.same_key(TARGET, FOUND);
        let keys = |row: &str| {
            let columns = self.keys().map(|column| format!("{row}.{}", quoted(column)));
            list(std::iter::once(format!("{row}.{KEY}")).chain(columns))
        };
        format!(
            "select {count}(*), {min}({FOUND}.{KEY}) from (select {} from {keyed} as {ROW} union \
             select {} from {change} as {CHANGE}) as {FOUND} where not exists (select 1 from {table} as {TARGET} where {same})",
            keys(ROW),
            keys(CHANGE)
        )
    }

    /// Counts the differences.
    pub fn changes(&self) -> String {
        self.counted(&quoted(&self.change()))
    }

    /// Inserts those rows with nulls.
    pub fn insert_missing(&self, columns: &[String]) -> String {
        let (table, change, keyed) = (self.table(), quoted(&self.change()), quoted(&self.keyed()));
        let same = self.same_key(TARGET, FOUND);
        let into = list(self.keys().chain(columns.iter().map(String::as_str)).map(quoted));
        let keys =
            |row: &str| self.keys().map(|column| format!("{row}.{}", quoted(column))).collect::<Vec<_>>();
        let values = list(keys(FOUND).into_iter().chain(columns.iter().map(|_| "0".to_owned())));
        format!(
            "insert into {table} ({into}) select {values} from (select {} from {keyed} as {ROW} union select {} from {change} \
             as {CHANGE}) as {FOUND} where not exists (select 1 from {table} as {TARGET} where {same})",
            list(keys(ROW)),
            list(keys(CHANGE))
        )
    }

    /// Applies the differences.
    pub fn apply_change(&self, columns: &[String]) -> String {
        let (table, change) = (self.table(), quoted(&self.change()));
        let set = columns
            .iter()
            .map(|column| format!("{0} = coalesce({TARGET}.{0}, 0) + {CHANGE}.{0}", quoted(column)));
        let same = self.same_key(TARGET, CHANGE);
        format!("update {table} as {TARGET} set {} from {change} as {CHANGE} where {same}", list(set))
    }

    /// Records the amounts that are applied now, for one column. Parameters: the number of the ledger and the target.
    pub fn remember(&self, column: &str, deltas: &str, places: [&str; 2]) -> String {
        let [ledger, target] = places;
        let (keyed, name, amount) = (quoted(&self.keyed()), self.literal(column), quoted(column));
        format!(
            "insert into {deltas} as {AMOUNT} (ledger, target, key, name, amount) select {ledger}, {target}, {ROW}.{KEY}, {name}, \
             {ROW}.{amount} from {keyed} as {ROW} where true order by {ROW}.{KEY} on conflict (ledger, target, key, name) \
             do update set amount = excluded.amount where {AMOUNT}.amount <> excluded.amount"
        )
    }

    /// Deletes the amounts of keys that have vanished; they were taken back.
    pub fn forget(&self, column: &str, deltas: &str, places: [&str; 2]) -> String {
        let (keyed, own) = (quoted(&self.keyed()), self.own_amount(AMOUNT, column, places));
        format!(
            "delete from {deltas} as {AMOUNT} where {own} \
             and not exists (select 1 from {keyed} as {ROW} where {ROW}.{KEY} = {AMOUNT}.key)"
        )
    }
}
