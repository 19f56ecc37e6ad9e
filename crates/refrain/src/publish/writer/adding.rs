//! What is added to what is there: rows once, numbers by their difference. Only here does the ledger keep something back.

use refrain_core::publish::target::Fitting;
use refrain_core::publish::text::append::Book;
use refrain_core::state::OnChange;

use super::{Entry, Swapped, Writer, plain, unfit, with_example};
use crate::action::binds::{Argument, Bound};
use crate::database::DatabaseError;
use crate::failpoint;
use crate::publish::comparison::{Difference, found};
use crate::publish::error::{WriteError, of};
use crate::publish::table::Publishes;

/// What can be done about other content under the key of a row that is only ever added.
const NEVER_CHANGED: &str = "`append-once` never changes a row: on-change = \"first\" keeps what came first, and mode = \"merge\" brings it up to date";

impl<DB: Publishes> Writer<DB> {
    /// Appends the rows whose keys the ledger does not know. What comes under a known key must say what was appended under
    /// it, or the job must say that the first content stays: then it is counted, and told by its keys.
    pub(super) async fn append(
        &self,
        connection: &mut DB::Connection,
        fitting: &Fitting,
        rows: u64,
        entry: Entry<'_>,
    ) -> Result<Swapped, WriteError> {
        let (texts, units, clock) =
            (&fitting.texts, format!("{}units", DB::LEDGER), format!("{}clock", DB::LEDGER));
        let Entry { ledger, fence, attempt, nonce, .. } = entry;
        let book = Book { units: &units, ledger, target: &self.target.name, fence, attempt, nonce };
        let what = format!("`{}`", self.publish.table);
        for text in texts.make_appended() {
            of(&what, DB::execute(connection, &plain(text)).await)?;
        }
        of(&what, DB::hash(connection, texts).await)?;
        let kept_out = if failpoint::is_weakened("publish.swallowed") {
            Difference::default()
        } else {
            found::<DB>(connection, &plain(texts.appended_otherwise(&book))).await?
        };
        if kept_out.count > 0 && self.publish.on_change != OnChange::First {
            let (count, keys) = (kept_out.count, self.publish.key.join(", "));
            let told = format!("{count} keys ({keys}) were appended to {what} before, with other content");
            let shown = kept_out.first.first().cloned();
            return Err(WriteError::Unfit(format!("{}\n  {NEVER_CHANGED}", with_example(told, shown))));
        }
        let written = of(&what, DB::execute(connection, &plain(texts.insert_new(&book))).await)?;
        failpoint::reach("publish.appended");
        if !failpoint::is_weakened("publish.unrecorded") {
            let record = plain(texts.record_new(&book, &clock, self.version));
            let recorded = of(&what, DB::execute(connection, &record).await)?;
            if recorded != written {
                let told = format!(
                    "{written} rows were appended, and {recorded} recorded: somebody else appends the same"
                );
                return Err(WriteError::Database(DatabaseError::Busy(told)));
            }
        }
        of(&what, DB::execute(connection, &plain(texts.adopt_content(&book))).await)?;
        let now = found::<DB>(connection, &plain(texts.appended_now(&book))).await?;
        let known = Difference {
            count: rows.saturating_sub(now.count).saturating_sub(kept_out.count),
            first: Vec::new(),
        };
        Ok(Swapped { written, known, kept_out })
    }

    /// Whether the rows that are there under the keys of staged units say the same: where no ledger remembers what was added.
    pub(super) async fn is_not_there_otherwise(
        &self,
        connection: &mut DB::Connection,
        fitting: &Fitting,
    ) -> Result<(), WriteError> {
        let Some(text) = fitting.texts.there_otherwise(&fitting.incomparable) else { return Ok(()) };
        let others = found::<DB>(connection, &plain(text)).await?;
        if others.count == 0 {
            return Ok(());
        }
        let (table, keys) = (&self.publish.table, self.publish.key.join(", "));
        let told = format!("`{table}` has a row of this key ({keys}) that says something else");
        let advice = "`append-once` never changes a row: mode = \"merge\" brings it up to date";
        Err(unfit(format!("{}\n  {advice}", with_example(told, others.first.first().cloned())), None))
    }

    pub(super) async fn apply_delta(
        &self,
        connection: &mut DB::Connection,
        fitting: &Fitting,
        entry: Entry<'_>,
    ) -> Result<u64, WriteError> {
        let (texts, columns) = (&fitting.texts, &self.publish.columns);
        let (deltas, ledger) = (format!("{}deltas", DB::LEDGER), entry.ledger.to_string());
        let places = [ledger.as_str(), "cast($1 as text)"];
        let target = match entry.run {
            Some(run) => format!("{}#{run}", self.target.name),
            None => self.target.name.clone(),
        };
        let of_target = |text: String| Bound { text, arguments: vec![Argument::Text(target.clone())] };
        let what = format!("`{}`", self.publish.table);
        for text in texts.make_keyed().into_iter().chain([texts.make_change(columns)]) {
            of(&what, DB::execute(connection, &plain(text)).await)?;
        }
        let fill = of_target(texts.fill_change(columns, &deltas, places));
        of(&what, DB::execute(connection, &fill).await)?;
        let (count, example) = of(&what, DB::finding(connection, &plain(texts.nowhere())).await)?;
        if count > 0 && !self.publish.insert_missing {
            let told = format!("{count} keys ({}) are not in {what}", self.publish.key.join(", "));
            let advice = "add these rows, or write insert-missing = true";
            return Err(unfit(format!("{told}\n  {advice}"), example));
        }
        if count > 0 {
            of(&what, DB::execute(connection, &plain(texts.insert_missing(columns))).await)?;
        }
        let written = of(&what, DB::execute(connection, &plain(texts.apply_change(columns))).await)?;
        let (differences, _) = of(&what, DB::finding(connection, &plain(texts.changes())).await)?;
        if i64::try_from(written) != Ok(differences) {
            let told =
                format!("{differences} differences were to be applied, and {written} rows of {what} changed");
            let advice = "a row went meanwhile, or two keys of the result are one row of the table";
            return Err(unfit(format!("{told}\n  {advice}"), None));
        }
        failpoint::reach("publish.added");
        if !failpoint::is_weakened("publish.unremembered") {
            for column in columns {
                for text in [texts.remember(column, &deltas, places), texts.forget(column, &deltas, places)] {
                    of(&what, DB::execute(connection, &of_target(text)).await)?;
                }
            }
        }
        Ok(written)
    }
}
