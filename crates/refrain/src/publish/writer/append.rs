//! Adds to existing rows: appends each row once, and adds amounts by their difference. Only these modes need the ledger to
//! decide what to write.

use refrain_core::publish::target::ColumnMapping;
use refrain_core::publish::text::append::AppendLedger;
use refrain_core::state::OnChange;

use super::{LedgerEntry, SwapCounts, Writer, plain, unfit, with_example};
use crate::database::DatabaseError;
use crate::failpoint;
use crate::publish::comparison::{Difference, found};
use crate::publish::error::{WriteError, of};
use crate::user_database::{Backend, BoundQuery, QueryArgument};

/// Advice for other content under the key of an appended row.
const NEVER_CHANGED: &str = "`append-once` never changes a row: use on-change = \"first\" to keep the first content, or mode = \"merge\" to update it";

impl<DB: Backend> Writer<DB> {
    /// Appends the rows whose keys the ledger does not know. A row with a known key must have the content that was appended
    /// under it, or the job must keep the first content: then such rows are counted, and their first keys reported.
    pub(super) async fn append(
        &self,
        connection: &mut DB::Connection,
        fitting: &ColumnMapping,
        rows: u64,
        entry: LedgerEntry<'_>,
    ) -> Result<SwapCounts, WriteError> {
        let (texts, units, clock) =
            (&fitting.texts, format!("{}units", DB::LEDGER), format!("{}clock", DB::LEDGER));
        let LedgerEntry { ledger, fence, attempt, nonce, .. } = entry;
        let book = AppendLedger { units: &units, ledger, target: &self.target.name, fence, attempt, nonce };
        let what = format!("`{}`", self.publish.table);
        for text in texts.make_appended() {
            of(&what, DB::execute_bound(connection, &plain(text)).await)?;
        }
        of(&what, DB::hash(connection, texts).await)?;
        let kept_out = if failpoint::is_weakened("publish.swallowed") {
            Difference::default()
        } else {
            found::<DB>(connection, &plain(texts.appended_otherwise(&book))).await?
        };
        if kept_out.count > 0 && self.publish.on_change != OnChange::First {
            let (count, keys) = (kept_out.count, self.publish.key.join(", "));
            let message = format!("{count} keys ({keys}) were appended to {what} before, with other content");
            let shown = kept_out.first.first().cloned();
            return Err(WriteError::Unfit(format!("{}\n  {NEVER_CHANGED}", with_example(message, shown))));
        }
        let written = of(&what, DB::execute_bound(connection, &plain(texts.insert_new(&book))).await)?;
        failpoint::reach("publish.appended");
        if !failpoint::is_weakened("publish.unrecorded") {
            let record = plain(texts.record_new(&book, &clock, self.version));
            let recorded = of(&what, DB::execute_bound(connection, &record).await)?;
            if recorded != written {
                let message = format!(
                    "{written} rows were appended but {recorded} recorded: another process appends the same rows"
                );
                return Err(WriteError::Database(DatabaseError::Busy(message)));
            }
        }
        of(&what, DB::execute_bound(connection, &plain(texts.adopt_content(&book))).await)?;
        let now = found::<DB>(connection, &plain(texts.appended_now(&book))).await?;
        let known = Difference {
            count: rows.saturating_sub(now.count).saturating_sub(kept_out.count),
            first: Vec::new(),
        };
        Ok(SwapCounts { written, known, kept_out })
    }

    /// Fails if the table has other content under the key of a staged unit. For jobs whose ledger has no entry per unit.
    pub(super) async fn check_existing(
        &self,
        connection: &mut DB::Connection,
        fitting: &ColumnMapping,
    ) -> Result<(), WriteError> {
        let Some(text) = fitting.texts.there_otherwise(&fitting.incomparable) else { return Ok(()) };
        let others = found::<DB>(connection, &plain(text)).await?;
        if others.count == 0 {
            return Ok(());
        }
        let (table, keys) = (&self.publish.table, self.publish.key.join(", "));
        let message = format!("`{table}` has a row with this key ({keys}) and other content");
        let advice = "`append-once` never changes a row: use mode = \"merge\" to update it";
        Err(unfit(format!("{}\n  {advice}", with_example(message, others.first.first().cloned())), None))
    }

    /// Adds to each row the difference between its amounts in this result and those that this window added before.
    pub(super) async fn apply_delta(
        &self,
        connection: &mut DB::Connection,
        fitting: &ColumnMapping,
        entry: LedgerEntry<'_>,
    ) -> Result<u64, WriteError> {
        let (texts, columns) = (&fitting.texts, &self.publish.columns);
        let (deltas, ledger) = (format!("{}deltas", DB::LEDGER), entry.ledger.to_string());
        let places = [ledger.as_str(), "cast($1 as text)"];
        let target = match entry.run {
            Some(run) => format!("{}#{run}", self.target.name),
            None => self.target.name.clone(),
        };
        let of_target =
            |text: String| BoundQuery { text, arguments: vec![QueryArgument::Text(target.clone())] };
        let what = format!("`{}`", self.publish.table);
        for text in texts.make_keyed().into_iter().chain([texts.make_change(columns)]) {
            of(&what, DB::execute_bound(connection, &plain(text)).await)?;
        }
        let fill = of_target(texts.fill_change(columns, &deltas, places));
        of(&what, DB::execute_bound(connection, &fill).await)?;
        let (count, example) = of(&what, DB::finding(connection, &plain(texts.nowhere())).await)?;
        if count > 0 && !self.publish.insert_missing {
            let message = format!("{count} keys ({}) are not in {what}", self.publish.key.join(", "));
            let advice = "add these rows, or set insert-missing = true";
            return Err(unfit(format!("{message}\n  {advice}"), example));
        }
        if count > 0 {
            of(&what, DB::execute_bound(connection, &plain(texts.insert_missing(columns))).await)?;
        }
        let written = of(&what, DB::execute_bound(connection, &plain(texts.apply_change(columns))).await)?;
        let (differences, _) = of(&what, DB::finding(connection, &plain(texts.changes())).await)?;
        if i64::try_from(written) != Ok(differences) {
            let message =
                format!("{differences} differences had to be applied, but {written} rows of {what} changed");
            let advice = "a row was deleted meanwhile, or two keys of the result match one row of the table";
            return Err(unfit(format!("{message}\n  {advice}"), None));
        }
        failpoint::reach("publish.added");
        if !failpoint::is_weakened("publish.unremembered") {
            for column in columns {
                for text in [texts.remember(column, &deltas, places), texts.forget(column, &deltas, places)] {
                    of(&what, DB::execute_bound(connection, &of_target(text)).await)?;
                }
            }
        }
        Ok(written)
    }
}
