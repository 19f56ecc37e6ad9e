//! A line of the queue: one job at one priority, as one number. The next line is one step in the index of the queue.

use super::{Result, StoreError};

/// The order in which runs are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Priority {
    /// A tick on time, an enqueued key, a request of the operator.
    Live,
    /// It was running when its worker died. It is claimed apart from others.
    Suspect,
    /// A missed window.
    CatchUp,
    /// A planned recomputation.
    Backfill,
}

/// The number of a job in a store.
pub(crate) type JobNumber = i32;

/// One job at one priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Line(pub(crate) i64);

/// The numbers of lines between one priority and the next: one for each possible job.
pub(crate) const JOBS_PER_PRIORITY: i64 = 1 << 32;

impl Priority {
    pub(crate) const ALL: [Priority; 4] =
        [Priority::Live, Priority::Suspect, Priority::CatchUp, Priority::Backfill];

    /// The priority of runs that a run of this priority opens: suspicion is not inherited.
    pub(crate) fn for_followers(self) -> Priority {
        if self == Priority::Suspect { Priority::Live } else { self }
    }
}

impl Line {
    pub(crate) fn of(priority: Priority, job: JobNumber) -> Line {
        Line(priority as i64 * JOBS_PER_PRIORITY + i64::from(job))
    }

    /// All lines of a job.
    pub(crate) fn all(job: JobNumber) -> [Line; 4] {
        Priority::ALL.map(|priority| Line::of(priority, job))
    }

    pub(crate) fn job(self) -> Result<JobNumber> {
        JobNumber::try_from(self.0 % JOBS_PER_PRIORITY)
            .ok()
            .filter(|job| *job > 0)
            .ok_or_else(|| broken(self))
    }

    pub(crate) fn priority(self) -> Result<Priority> {
        let priority =
            Priority::ALL.into_iter().find(|priority| *priority as i64 == self.0 / JOBS_PER_PRIORITY);
        priority.ok_or_else(|| broken(self))
    }
}

fn broken(line: Line) -> StoreError {
    StoreError::Broken(format!("{} is not a valid line of the queue", line.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_priority_and_a_job_and_urgent_lines_come_first() {
        for priority in Priority::ALL {
            for job in [1, 7, i32::MAX] {
                let line = Line::of(priority, job);
                assert_eq!((line.priority().unwrap(), line.job().unwrap()), (priority, job));
            }
        }
        assert!(Line::of(Priority::Live, i32::MAX) < Line::of(Priority::Suspect, 1));
        assert!(Line::of(Priority::CatchUp, i32::MAX) < Line::of(Priority::Backfill, 1));
        assert!(Line(-1).job().is_err() || Line(-1).priority().is_err());
        assert!(Line(9 << 32).priority().is_err());
    }
}
