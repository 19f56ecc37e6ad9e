//! Collects the rows of a query into pages, so that memory does not depend on the number of rows.

use super::cell::{Cell, Row};

/// The most rows of a page.
const PAGE_ROWS: usize = 5_000;
/// A page with so many bytes is full, however many rows it has.
const PAGE_BYTES: usize = 4 * 1_024 * 1_024;
/// A page on its way to the reader; an empty one is the last.
pub(crate) type RowPage = Result<Vec<Row>, sqlx::Error>;

/// Collects rows into pages.
#[derive(Default)]
pub(super) struct RowPages {
    rows: Vec<Row>,
    bytes: usize,
}

impl RowPages {
    /// Adds a row; gives a page when it is full.
    pub(super) fn push(&mut self, row: Row) -> Option<Vec<Row>> {
        self.bytes += row.iter().map(Cell::size).sum::<usize>();
        self.rows.push(row);
        (self.rows.len() >= PAGE_ROWS || self.bytes >= PAGE_BYTES).then(|| self.take())
    }

    pub(super) fn take(&mut self) -> Vec<Row> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_full_by_rows_or_by_bytes() {
        let mut pages = RowPages::default();
        let small = vec![Cell::Number("1".to_owned())];
        assert!((1..PAGE_ROWS).all(|_| pages.push(small.clone()).is_none()));
        assert_eq!(pages.push(small).map(|page| page.len()), Some(PAGE_ROWS));
        assert!(pages.push(vec![Cell::Text("x".repeat(PAGE_BYTES))]).is_some());
    }
}
