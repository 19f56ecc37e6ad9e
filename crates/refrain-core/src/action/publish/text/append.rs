//! Rows that are added once: `append-once` keeps their keys in the ledger, `land` keeps what identifies them in the row.

use super::names::{CONTENT, ENTRY, KEY, ROW, SHOWN, TARGET};
use super::{TableStatements, list};
use crate::project::Dialect;
use crate::publish::quoted;

/// The part of the ledger that records appended rows.
#[derive(Debug, Clone, Copy)]
pub struct AppendLedger<'b> {
    /// The table of units.
    pub units: &'b str,
    /// The number of the ledger.
    pub ledger: i64,
    /// The name of the target table: a job may append to several.
    pub target: &'b str,
    /// The fence of the run.
    pub fence: i64,
    /// The number of the attempt.
    pub attempt: i32,
    /// The nonce of that attempt's claim.
    pub nonce: i64,
}

impl TableStatements {
    /// The table of staged rows with their keys as one text.
    pub(super) fn keyed(&self) -> String {
        format!("{}:keyed", self.stage)
    }

    /// Creates and fills that table.
    pub fn make_keyed(&self) -> Vec<String> {
        self.keyed_with("")
    }

    /// Creates and fills it with an additional hash of each row's content, for rows that are appended. SQLite has no hash
    /// function: [`TableStatements::fill_content`] fills it in.
    pub fn make_appended(&self) -> Vec<String> {
        let content = match self.dialect {
            Dialect::Postgres => {
                let names = self.literal(&self.content_column_names());
                let values =
                    self.content_columns().into_iter().map(|column| format!("{ROW}.{}", quoted(column)));
                let parts: Vec<String> = std::iter::once(names).chain(values).collect();
                let id = crate::surrogate::apart(&parts);
                let digits = format!("pg_catalog.replace({}, '-', '')", self.as_text(&id));
                format!("cast(cast('x' || pg_catalog.substr({digits}, 1, 16) as bit(64)) as bigint)")
            }
            Dialect::Sqlite => "cast(null as integer)".to_owned(),
        };
        self.keyed_with(&format!(", {content} as {CONTENT}"))
    }

    /// The columns that make up the content of a row, sorted by name, because a query may return them in any order. Derived
    /// columns add no content, and the version belongs to the job.
    pub fn content_columns(&self) -> Vec<&str> {
        let mut columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        columns.sort_unstable();
        columns
    }

    /// The names of those columns, which are part of the content.
    pub fn content_column_names(&self) -> String {
        list(self.content_columns().into_iter().map(quoted))
    }

    /// Reads the content of a page of rows after a key, and writes the hashes of that page. Parameters: the key and the
    /// limit; the page.
    pub fn fill_content(&self) -> [String; 2] {
        let keyed = quoted(&self.keyed());
        let text = |column: &str| crate::surrogate::text(self.dialect, &format!("{ROW}.{}", quoted(column)));
        let values =
            list(std::iter::once(format!("{ROW}.{KEY}")).chain(self.content_columns().into_iter().map(text)));
        [
            format!(
                "select {values} from {keyed} as {ROW} where {ROW}.{KEY} > $1 order by {ROW}.{KEY} limit $2"
            ),
            format!(
                "update {keyed} as {ROW} set {CONTENT} = {ENTRY}.{CONTENT} \
                 from (select value ->> 0 as {KEY}, value ->> 1 as {CONTENT} from jsonb_each($1)) as {ENTRY} \
                 where {ROW}.{KEY} = {ENTRY}.{KEY}"
            ),
        ]
    }

    fn keyed_with(&self, more: &str) -> Vec<String> {
        let (stage, key) = (self.stage(), self.key_text(ROW));
        let (kind, end, place) = match self.dialect {
            Dialect::Postgres => (" on commit drop", "", ""),
            Dialect::Sqlite => ("", " where true", "temp."),
        };
        let (name, index) = (quoted(&self.keyed()), quoted(&format!("{}:key", self.keyed())));
        vec![
            format!(
                "create temporary table {name}{kind} as select {ROW}.*, {key} as {KEY}{more} from {stage} as {ROW}{end}"
            ),
            format!("create index {place}{index} on {name} ({KEY})"),
        ]
    }

    /// Inserts the rows whose keys are not in the ledger.
    pub fn insert_new(&self, book: &AppendLedger<'_>) -> String {
        let (table, into, values, keyed) = (self.table(), self.into(), self.values(), quoted(&self.keyed()));
        let (units, known) = (book.units, self.known(book));
        format!(
            "insert into {table} ({into}) select {values} from {keyed} as {ROW} where not exists \
             (select 1 from {units} as {ENTRY} where {known})"
        )
    }

    /// Records their keys and content.
    pub fn record_new(&self, book: &AppendLedger<'_>, clock: &str, version: u32) -> String {
        let AppendLedger { units, ledger, target, fence, attempt, nonce } = *book;
        let (keyed, key) = (quoted(&self.keyed()), self.entry(target));
        format!(
            "insert into {units} (ledger, key, fingerprint, fence, at, version, attempt, nonce, failures, written, status) \
             select {ledger}, {key}, {ROW}.{CONTENT}, {fence}, (select now from {clock}), {version}, {attempt}, {nonce}, 0, true, 'applied' \
             from {keyed} as {ROW} where true order by {ROW}.{KEY} on conflict (ledger, key) do nothing"
        )
    }

    /// Finds keys that the ledger has with other content. Entries recorded without content are left out.
    pub fn appended_otherwise(&self, book: &AppendLedger<'_>) -> String {
        self.among_known(book, &format!("{ENTRY}.fingerprint <> {ROW}.{CONTENT}"))
    }

    /// Finds keys that this very attempt recorded, including those of a commit whose answer was lost.
    pub fn appended_now(&self, book: &AppendLedger<'_>) -> String {
        let AppendLedger { fence, attempt, nonce, .. } = book;
        let own =
            format!("{ENTRY}.fence = {fence} and {ENTRY}.attempt = {attempt} and {ENTRY}.nonce = {nonce}");
        self.among_known(book, &own)
    }

    /// Records the content of keys that were recorded without it.
    pub fn adopt_content(&self, book: &AppendLedger<'_>) -> String {
        let (units, keyed, known) = (book.units, quoted(&self.keyed()), self.known(book));
        format!(
            "update {units} as {ENTRY} set fingerprint = {ROW}.{CONTENT} from {keyed} as {ROW} \
             where {known} and {ENTRY}.fingerprint is null"
        )
    }

    fn among_known(&self, book: &AppendLedger<'_>, which: &str) -> String {
        let (units, keyed, known) = (book.units, quoted(&self.keyed()), self.known(book));
        // A cross join keeps its order on SQLite, which may else read the staged rows for each entry of the ledger.
        self.listed(&format!(
            "select {ROW}.{KEY} as {SHOWN} from {keyed} as {ROW} cross join {units} as {ENTRY} where {known} and {which}"
        ))
    }

    /// The condition that a ledger entry belongs to a row.
    fn known(&self, book: &AppendLedger<'_>) -> String {
        format!("{ENTRY}.ledger = {} and {ENTRY}.key = {}", book.ledger, self.entry(book.target))
    }

    /// Inserts the rows that do not exist yet, by the columns that identify them.
    pub fn insert_absent(&self) -> String {
        let (table, into, values, stage) = (self.table(), self.into(), self.values(), self.stage());
        let conflict = list(self.keys().map(quoted));
        format!(
            "insert into {table} ({into}) select {values} from {stage} as {ROW} where true on conflict ({conflict}) do nothing"
        )
    }

    /// Finds staged rows whose key exists in the table with other content, for jobs whose keys are only in the table.
    pub fn there_otherwise(&self, incomparable: &[String]) -> Option<String> {
        let (table, stage, same) = (self.table(), self.stage(), self.same_key(TARGET, ROW));
        let others = self.columns.iter().filter(|name| self.keys().all(|key| key != name.as_str()));
        let differs = others.map(|name| self.differs(name, incomparable)).collect::<Vec<_>>().join(" or ");
        let shown = self.key_text(ROW);
        (!differs.is_empty()).then(|| {
            self.listed(&format!(
                "select {shown} as {SHOWN} from {stage} as {ROW} join {table} as {TARGET} on {same} where {differs}"
            ))
        })
    }

    /// The key of a row in the ledger; it contains the table, because a job may append to several.
    fn entry(&self, target: &str) -> String {
        format!("{} || {ROW}.{KEY}", self.literal(&format!("row:{target}:")))
    }
}
