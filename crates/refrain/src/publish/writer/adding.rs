//! What is added to what is there: rows once, numbers by their difference. Only here does the ledger keep something back.

use refrain_core::publish::target::Fitting;

use super::{Entry, Writer, plain, unfit};
use crate::action::binds::{Argument, Bound};
use crate::database::DatabaseError;
use crate::failpoint;
use crate::publish::error::{WriteError, of};
use crate::publish::table::Publishes;

impl<DB: Publishes> Writer<DB> {
    pub(super) async fn append(
        &self,
        connection: &mut DB::Connection,
        fitting: &Fitting,
        entry: Entry<'_>,
    ) -> Result<u64, WriteError> {
        let (texts, units) = (&fitting.texts, format!("{}units", DB::LEDGER));
        let [ledger, fence, attempt] =
            [entry.ledger, entry.fence, entry.attempt.into()].map(|n| n.to_string());
        let what = format!("`{}`", self.publish.table);
        for text in texts.make_keyed() {
            of(&what, DB::execute(connection, &plain(text)).await)?;
        }
        let insert = plain(texts.insert_new(&units, &ledger, &self.target.name));
        let written = of(&what, DB::execute(connection, &insert).await)?;
        failpoint::reach("publish.appended");
        let places = [ledger.as_str(), &fence, &self.version.to_string(), &attempt].map(str::to_owned);
        let [ledger, fence, version, attempt] = &places;
        let record = texts.record_new(
            &units,
            &format!("{}clock", DB::LEDGER),
            &self.target.name,
            [ledger, fence, version, attempt],
        );
        if !failpoint::is_weakened("publish.unrecorded") {
            let recorded = of(&what, DB::execute(connection, &plain(record)).await)?;
            if recorded != written {
                let told = format!(
                    "{written} rows were appended, and {recorded} recorded: somebody else appends the same"
                );
                return Err(WriteError::Database(DatabaseError::Busy(told)));
            }
        }
        Ok(written)
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
