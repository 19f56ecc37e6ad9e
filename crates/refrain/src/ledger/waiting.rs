//! Intents that wait beside the rows: read by a relay, and forgotten when they have arrived.
//!
//! There is no position up to which they have been read. On PostgreSQL a lower number may be committed after a higher one
//! was read; that a row is there is the only truth.

use super::destination::Destination;
use super::{Result, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, place, retried};
use crate::payload::PAYLOAD_BYTES_MAX;

/// The most intents that are read at once.
pub(crate) const PAGE: usize = 1_000;
/// The most projects that are looked at in one database.
const PROJECTS_MAX: usize = 100;

/// An intent as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct Waiting {
    pub(crate) id: i64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) version: i32,
    /// The store that it is for; whoever wrote a plain row need not know.
    pub(crate) store: Option<String>,
    /// How long the payload is. One that is too long is not read.
    pub(crate) bytes: Option<i64>,
    pub(crate) payload: Option<String>,
    /// The run that wrote it.
    pub(crate) job: Option<String>,
    pub(crate) run: Option<String>,
}

/// A page of what waits.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) intents: Vec<Waiting>,
    /// Projects that have intents here and that nobody has ever opened a ledger for.
    pub(crate) strangers: Vec<String>,
}

/// Intents of a project after `after`, and the names of strangers.
pub(crate) async fn look(destination: &Destination, project: &str, after: i64) -> Result<Page> {
    let mut page = Page::default();
    let mut transaction = destination.database.read().await?;
    let mut before = String::new();
    for _ in 0..PROJECTS_MAX {
        let next: Option<(String,)> =
            transaction.fetch_optional(catalog::INTENT_PROJECT.bind(before)).await?;
        let Some((name,)) = next else { break };
        if name == project {
            let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
            let longest = i64::try_from(PAYLOAD_BYTES_MAX).unwrap_or(i64::MAX);
            let list = catalog::INTENT_LIST.bind(project).bind(after).bind(limit).bind(longest);
            page.intents = transaction.fetch_all(list).await?;
        } else {
            let find = catalog::PROJECT_FIND.bind(name.as_str());
            let owner: Option<(Option<String>, String)> = transaction.fetch_optional(find).await?;
            page.strangers.extend(owner.is_none().then(|| name.clone()));
        }
        before = name;
    }
    Ok(page)
}

/// Takes away intents that have arrived.
pub(crate) async fn forget(destination: &Destination, intents: &[i64]) -> Result<()> {
    if intents.is_empty() {
        return Ok(());
    }
    retried(|| async {
        let mut transaction = destination.database.write().await?;
        let rows = Rows::default().integers(intents.iter().copied());
        transaction.execute(catalog::INTENT_FORGET.bind(rows).planned_anew()).await?;
        transaction.commit(place!("relay-forget")).await?;
        Ok::<_, DatabaseError>(())
    })
    .await?;
    Ok(())
}
