//! The view beside a table in which rows land. A file gets one, and it is said so; on a server it is asked for.

use sqlx::Pool;

use super::{Writer, plain};
use crate::database::begun_in;
use crate::publish::error::{WriteError, of};
use crate::publish::table::Publishes;

impl<DB: Publishes> Writer<DB> {
    /// Looks whether the view is there that the job names. Of a table that is not fit for rows to land in there is none; whoever
    /// writes says so.
    pub(crate) async fn show(&self, pool: &Pool<DB>) -> Result<(), WriteError> {
        let (Some(view), Ok(())) = (&self.publish.view, self.is_ready()) else { return Ok(()) };
        let what = format!("the view `{view}`");
        let mut transaction = of(&what, begun_in(pool).await)?;
        let found = of(&what, DB::target(&mut transaction, view).await)?;
        of(&what, transaction.rollback().await)?;
        let table = &self.publish.table;
        let made = self.target.view(table, view, &found, DB::DIALECT).map_err(WriteError::Refused)?;
        if let Some(text) = made {
            let mut connection = of(&what, pool.acquire().await)?;
            of(&what, DB::execute(&mut connection, &plain(text)).await)?;
            let (view, table) = (view.to_string(), table.to_string());
            tracing::info!(view, table, "made the view without duplicates in this database");
        }
        Ok(())
    }
}
