//! Where a worker's last claims from each line ended, so that the next claim begins there.
//!
//! On PostgreSQL the front of a busy line is a graveyard: deleted rows stay until no transaction can see them, and a transaction
//! that is open for an hour keeps an hour of them. A claim that begins at the very front reads all of these each time. Runs that
//! came back to the line meanwhile are before the mark, so a mark is valid for one second only.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::store::queue_line::Line;

/// How long a mark is valid.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// The marks of a worker.
#[derive(Debug, Default)]
pub(crate) struct QueueFronts(HashMap<Line, (i64, Instant)>);

impl QueueFronts {
    /// The run after which to look in a line.
    pub(crate) fn get(&self, line: Line) -> i64 {
        self.0.get(&line).filter(|(_, since)| since.elapsed() < GOOD_FOR).map_or(0, |(after, _)| *after)
    }

    /// Remembers where a claim ended; none if the line had no more.
    pub(crate) fn set(&mut self, line: Line, last: Option<i64>) {
        match last {
            None => {
                self.0.remove(&line);
            }
            Some(last) => {
                let fresh = self.0.get(&line).filter(|(_, since)| since.elapsed() < GOOD_FOR);
                let since = fresh.map_or_else(Instant::now, |(_, since)| *since);
                self.0.insert(line, (last, since));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::queue_line::Priority;

    #[test]
    fn a_mark_is_kept_until_the_line_has_no_more() {
        let (busy, other) = (Line::of(Priority::Live, 1), Line::of(Priority::Live, 2));
        let mut fronts = QueueFronts::default();
        assert_eq!(fronts.get(busy), 0);
        fronts.set(busy, Some(2_000));
        fronts.set(busy, Some(4_000));
        assert_eq!((fronts.get(busy), fronts.get(other)), (4_000, 0));
        fronts.set(busy, None);
        assert_eq!(fronts.get(busy), 0);
    }

    #[test]
    fn a_mark_expires_however_often_it_is_moved() {
        let line = Line::of(Priority::Live, 1);
        let mut fronts = QueueFronts::default();
        let Some(long_ago) = Instant::now().checked_sub(GOOD_FOR) else { return };
        fronts.0.insert(line, (7, long_ago));
        assert_eq!(fronts.get(line), 0, "runs that came back meanwhile are before it");
        fronts.set(line, Some(9));
        assert_eq!(fronts.get(line), 9);
    }
}
