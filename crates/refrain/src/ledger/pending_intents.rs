//! Intents that wait next to the rows: a relay reads them, and deletes them once they have arrived.
//!
//! There is no position up to which they have been read. On PostgreSQL a lower number may be committed after a higher one was
//! read; only the presence of the row counts.
//!
//! Any program may write a row, so a row may contain invalid text: SQLite accepts bytes that are not UTF-8. A page that cannot
//! be decoded is bisected until the bad row is alone; the other rows are relayed.

use super::destination::Destination;
use super::{Result, catalog};
use crate::database::statement::Rows;
use crate::database::{DatabaseError, Transaction, place, retried};
use crate::store::payload::PAYLOAD_BYTES_MAX;

/// The most intents that are read at once.
pub(crate) const PAGE: usize = 1_000;
/// The most projects that are searched in one database.
const PROJECTS_MAX: usize = 100;

/// An intent as it is stored.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
pub(crate) struct PendingIntent {
    pub(crate) id: i64,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) version: i64,
    /// The store that it is for; a plain insert may leave it out.
    pub(crate) store: Option<String>,
    /// The length of the payload. A payload that is too long is not read.
    pub(crate) bytes: Option<i64>,
    pub(crate) payload: Option<String>,
    /// The run that wrote it.
    pub(crate) job: Option<String>,
    pub(crate) run: Option<String>,
}

/// A page of pending intents.
#[derive(Debug, Default)]
pub(crate) struct IntentPage {
    pub(crate) intents: Vec<PendingIntent>,
    /// The numbers of intents that cannot be decoded.
    pub(crate) undecodable: Vec<i64>,
    /// How many intents are on the page, whether or not they can be decoded.
    pub(crate) length: usize,
    /// The highest number on the page; 0 if it is empty.
    pub(crate) last: i64,
    /// Projects that have intents here and whose ledger was never opened.
    pub(crate) strangers: Vec<String>,
}

/// Intents of a project after `after`, and the names of projects without a ledger.
pub(crate) async fn look(destination: &Destination, project: &str, after: i64) -> Result<IntentPage> {
    let mut page = IntentPage::default();
    let mut transaction = destination.database.read().await?;
    let mut before = String::new();
    for _ in 0..PROJECTS_MAX {
        let next = transaction.fetch_optional(catalog::INTENT_PROJECT.bind(before)).await;
        let next: Option<(String,)> = match next {
            // Names that cannot be decoded belong to no project; the names after them cannot be read.
            Err(error) if error.is_undecodable() => {
                page.strangers.push("(a name that is not UTF-8)".to_owned());
                break;
            }
            next => next?,
        };
        let Some((name,)) = next else { break };
        if name != project {
            let find = catalog::PROJECT_FIND.bind(name.as_str());
            let owner: Option<(Option<String>, String)> = transaction.fetch_optional(find).await?;
            page.strangers.extend(owner.is_none().then(|| name.clone()));
        }
        before = name;
    }
    read(&mut transaction, project, after, &mut page).await?;
    Ok(page)
}

/// Reads the intents of a page. A part that cannot be decoded is bisected.
async fn read(transaction: &mut Transaction, project: &str, after: i64, page: &mut IntentPage) -> Result<()> {
    let ids: Vec<(i64,)> =
        transaction.fetch_all(catalog::INTENT_NUMBERS.bind(project).bind(after).bind(count(PAGE))).await?;
    page.length = ids.len();
    page.last = ids.last().map_or(0, |(id,)| *id);
    let mut parts = vec![ids.as_slice()];
    while let Some(part) = parts.pop() {
        let (Some((first,)), Some((last,))) = (part.first(), part.last()) else { continue };
        let page_of =
            catalog::INTENT_LIST.bind(project).bind(*first).bind(*last).bind(count(PAYLOAD_BYTES_MAX));
        match transaction.fetch_all(page_of).await {
            Ok(intents) => page.intents.extend::<Vec<PendingIntent>>(intents),
            Err(error) if error.is_undecodable() && part.len() == 1 => page.undecodable.push(*first),
            Err(error) if error.is_undecodable() => {
                let (front, back) = part.split_at(part.len() / 2);
                parts.extend([back, front]);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Deletes intents that have arrived.
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
