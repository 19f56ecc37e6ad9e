//! The output of commands, where every machine can read it.
//!
//! It is stored in pieces that the capturing process numbers within their attempt: storing a piece again after a lost answer finds
//! it. No fence guards it: the output of an attempt is a fact, even if the attempt was taken over meanwhile.

use super::{Result, Store, catalog};
use crate::database::statement::Rows;
use crate::database::{place, retried};

/// The stream that a piece of output comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputStream {
    /// The command's standard output.
    Stdout,
    /// The command's standard error.
    Stderr,
    /// Remarks of Refrain about the two, such as how much was left out.
    Remark,
}

impl OutputStream {
    /// Its name: `stdout`, `stderr` or `remark`.
    pub fn name(self) -> &'static str {
        match self {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
            OutputStream::Remark => "remark",
        }
    }

    pub(crate) fn stored(name: &str) -> OutputStream {
        match name {
            "stdout" => OutputStream::Stdout,
            "stderr" => OutputStream::Stderr,
            _ => OutputStream::Remark,
        }
    }
}

/// A piece of output: one stream, whole lines as a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) stream: OutputStream,
    /// In microseconds since 1970.
    pub(crate) at: i64,
    pub(crate) text: String,
}

/// A piece as it is stored.
#[derive(Debug, sqlx_macros::FromRow)]
pub(crate) struct OutputRow {
    pub(crate) attempt: i32,
    pub(crate) number: i32,
    pub(crate) stream: String,
    pub(crate) at: i64,
    pub(crate) text: String,
}

/// Stores pieces of an attempt, the first of which has this number.
pub(crate) async fn append(
    store: &Store,
    run: i64,
    attempt: i32,
    first: i64,
    pieces: &[Piece],
) -> Result<()> {
    Ok(retried(|| async {
        let rows = Rows::default()
            .integers((first..).take(pieces.len()))
            .texts(pieces.iter().map(|piece| piece.stream.name().to_owned()))
            .integers(pieces.iter().map(|piece| piece.at))
            .texts(pieces.iter().map(|piece| piece.text.clone()));
        let mut transaction = store.database.write().await?;
        transaction.execute(catalog::OUTPUT_APPEND.bind(run).bind(attempt).bind(rows)).await?;
        transaction.commit(place!("output")).await
    })
    .await?)
}

/// Pieces of a run after a position, in their order.
pub(crate) async fn list(
    store: &Store,
    run: i64,
    (attempt, number): (i64, i64),
    limit: i64,
) -> Result<Vec<OutputRow>> {
    let mut transaction = store.database.read().await?;
    Ok(transaction.fetch_all(catalog::OUTPUT_LIST.bind(run).bind(attempt).bind(number).bind(limit)).await?)
}
