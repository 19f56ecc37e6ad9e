//! What an attempt came to, by its own word and by what the ledgers say of its units.

use refrain_core::state::{FailureReason, RunOutcome};

use super::executor::Interruption;
use crate::job::JobError;
use crate::ledger::tally::Told;
use crate::ledger::unapplied::{Left, Touched};
use crate::store::finish::End;

/// What an attempt came to.
#[derive(Debug)]
pub(crate) enum Verdict {
    Done,
    /// The job is content, but not all of its units are applied. `again` says whether another attempt may help.
    Partial {
        message: String,
        again: bool,
    },
    Failed(JobError),
    Interrupted(Interruption),
}

impl From<JobError> for Verdict {
    fn from(error: JobError) -> Verdict {
        match error {
            error if error.is_lost() => Verdict::Interrupted(Interruption::Lost),
            error if error.is_exhausted() => Verdict::Interrupted(Interruption::Exhausted),
            error => Verdict::Failed(error),
        }
    }
}

impl Verdict {
    /// Why it is not done, by the word of the job, where that decides what comes next.
    pub(super) fn reason(&self) -> Option<FailureReason> {
        match self {
            Verdict::Failed(error) => error.reason(),
            Verdict::Done | Verdict::Partial { .. } | Verdict::Interrupted(_) => None,
        }
    }
}

/// The same by what the ledgers say. Units that the run has left in doubt, in this attempt or an earlier one, wait for a person, also
/// if more went wrong; unless another attempt follows by itself that may end the doubt. A database that does not answer now says nothing
/// of them.
pub(super) async fn reason(
    own: Option<FailureReason>,
    end: &End,
    told: &Told,
    touched: &Touched,
) -> Option<FailureReason> {
    let is_over = match end {
        End::Closed { outcome, .. } => matches!(outcome, RunOutcome::Failed | RunOutcome::Partial),
        End::Again { .. } => told.held_in_doubt > 0,
        End::GivenBack => false,
    };
    if !is_over || own == Some(FailureReason::Held) {
        return own;
    }
    let left = touched.left().await.ok().flatten();
    if left.is_some_and(|left| left.doubtful > 0) { Some(FailureReason::InDoubt) } else { own }
}

/// What an attempt comes to that says of itself that it is done.
pub(super) async fn left(touched: &Touched) -> Verdict {
    match touched.left().await {
        Ok(None) => Verdict::Done,
        Ok(Some(Left { count, first, doubtful })) => {
            let doubt = if doubtful > 0 { format!("; {doubtful} in doubt") } else { String::new() };
            let message =
                format!("not all units of this run are applied: {count} left, `{first}` first{doubt}");
            Verdict::Partial { message, again: false }
        }
        Err(error) => Verdict::Failed(error.into()),
    }
}

/// A job that is content has still not done what is not settled.
pub(super) fn judged(result: Verdict, told: &Told) -> Verdict {
    match (settled(result, told), told.too_wide()) {
        // Another attempt would be shown the same.
        (Verdict::Done, Some(message)) => Verdict::Partial { message, again: false },
        (Verdict::Partial { message, again }, Some(wide)) => {
            Verdict::Partial { message: format!("{message}; {wide}"), again }
        }
        (verdict, _) => verdict,
    }
}

fn settled(result: Verdict, told: &Told) -> Verdict {
    let counts = &told.counts;
    match result {
        Verdict::Done | Verdict::Partial { .. } if told.unsettled() > 0 => {
            Verdict::Failed(JobError::new(format!(
                "{} of {} units were discovered and never settled: a batch was dropped, or not asked for",
                told.unsettled(),
                told.discovered
            )))
        }
        Verdict::Done | Verdict::Partial { .. } if counts.failed > 0 || counts.skipped > 0 => {
            let why = told.failure.clone().unwrap_or_else(|| "they are parked".to_owned());
            let message = format!(
                "{} of {} units are not applied: {why}",
                counts.failed + counts.skipped,
                told.discovered
            );
            // What is held in doubt stays so, however often the rest is tried.
            Verdict::Partial { message, again: counts.failed > told.held_in_doubt }
        }
        result => result,
    }
}
