//! The view without duplicates beside a table of mode `land`. In SQLite it is created, and that is logged; on a server the
//! operator creates it.

use sqlx::Pool;

use super::{Writer, plain};
use crate::database::begun_in;
use crate::publish::error::{WriteError, of};
use crate::user_database::Backend;

impl<DB: Backend> Writer<DB> {
    /// Creates the view that the job names, or fails if it is missing on a server. A table that is not ready gets no view; the
    /// write that follows reports why.
    pub(crate) async fn create_view(&self, pool: &Pool<DB>) -> Result<(), WriteError> {
        let (Some(view), Ok(())) = (&self.publish.view, self.is_ready()) else { return Ok(()) };
        let what = format!("the view `{view}`");
        let mut transaction = of(&what, begun_in(pool).await)?;
        let found = of(&what, DB::target(&mut transaction, view).await)?;
        of(&what, transaction.rollback().await)?;
        let table = &self.publish.table;
        let made = self.target.view(table, view, &found, DB::DIALECT).map_err(WriteError::Refused)?;
        if let Some(text) = made {
            let mut connection = of(&what, pool.acquire().await)?;
            of(&what, DB::execute_bound(&mut connection, &plain(text)).await)?;
            let (view, table) = (view.to_string(), table.to_string());
            tracing::info!(view, table, "created the view without duplicates in this database");
        }
        Ok(())
    }
}
