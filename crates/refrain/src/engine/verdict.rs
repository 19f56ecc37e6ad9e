//! The result of an attempt: by what the job returned, and by what the ledgers record of its units.

use refrain_core::state::{FailureReason, RunOutcome};

use super::executor::Interruption;
use crate::ledger::unapplied::{TouchedLedgers, UnappliedUnits};
use crate::run::JobError;
use crate::store::counts::UnitSummary;
use crate::store::finish::End;

/// The result of an attempt.
#[derive(Debug)]
pub(crate) enum Verdict {
    Done,
    /// The job returned without an error, but not all of its units are applied. `again` says whether another attempt may help.
    Partial {
        message: String,
        again: bool,
    },
    Failed(JobError),
    Interrupted(Interruption),
}

impl From<JobError> for Verdict {
    fn from(error: JobError) -> Verdict {
        match error.reason() {
            FailureReason::Lost => Verdict::Interrupted(Interruption::Lost),
            FailureReason::Exhausted => Verdict::Interrupted(Interruption::Exhausted),
            _ => Verdict::Failed(error),
        }
    }
}

impl Verdict {
    /// Why it is not done, as far as the attempt itself knows.
    pub(super) fn reason(&self) -> Option<FailureReason> {
        match self {
            Verdict::Done | Verdict::Interrupted(Interruption::Cancelled) => None,
            Verdict::Failed(error) => Some(error.reason()),
            Verdict::Partial { .. } => Some(FailureReason::Unapplied),
            Verdict::Interrupted(Interruption::Stopped) => Some(FailureReason::Interrupted),
            Verdict::Interrupted(Interruption::Lost) => Some(FailureReason::Lost),
            Verdict::Interrupted(Interruption::Exhausted) => Some(FailureReason::Exhausted),
            Verdict::Interrupted(Interruption::Outnumbered(_)) => Some(FailureReason::Superseded),
        }
    }
}

/// Why it is not done, also by what the ledgers record. Units that the run has left in doubt, in this attempt or an earlier one, wait
/// for the operator, even if more went wrong; unless another attempt follows by itself that may resolve them. A database that does
/// not answer now counts as having none.
pub(super) async fn reason(
    own: Option<FailureReason>,
    end: &End,
    summary: &UnitSummary,
    touched: &TouchedLedgers,
) -> Option<FailureReason> {
    let is_over = match end {
        End::Closed { .. } => matches!(end.outcome(), Some(RunOutcome::Failed | RunOutcome::Partial)),
        End::Again { .. } => summary.held_in_doubt > 0,
        End::GivenBack => false,
    };
    if !is_over || own == Some(FailureReason::Held) {
        return own;
    }
    let left = touched.left().await.ok().flatten();
    if left.is_some_and(|left| left.doubtful > 0) { Some(FailureReason::InDoubt) } else { own }
}

/// The verdict about an attempt whose job returned without an error: are units left that are not applied?
pub(super) async fn units_left(touched: &TouchedLedgers) -> Verdict {
    match touched.left().await {
        Ok(None) => Verdict::Done,
        Ok(Some(UnappliedUnits { count, first, doubtful })) => {
            let doubt = if doubtful > 0 { format!("; {doubtful} in doubt") } else { String::new() };
            let message =
                format!("not all units of this run are applied: {count} left, `{first}` first{doubt}");
            Verdict::Partial { message, again: false }
        }
        Err(error) => Verdict::Failed(error.into()),
    }
}

/// Corrects a verdict by the counts of the attempt's units: a job that returned without an error may have left some.
pub(super) fn by_counts(result: Verdict, summary: &UnitSummary) -> Verdict {
    match (by_units(result, summary), summary.too_wide()) {
        // Another attempt would read the same units.
        (Verdict::Done, Some(message)) => Verdict::Partial { message, again: false },
        (Verdict::Partial { message, again }, Some(wide)) => {
            Verdict::Partial { message: format!("{message}; {wide}"), again }
        }
        (verdict, _) => verdict,
    }
}

fn by_units(result: Verdict, summary: &UnitSummary) -> Verdict {
    let counts = &summary.counts;
    match result {
        Verdict::Done | Verdict::Partial { .. } if summary.unsettled() > 0 => {
            Verdict::Failed(JobError::new(format!(
                "{} of {} units were discovered and never settled: a batch was dropped, or not asked for",
                summary.unsettled(),
                summary.discovered
            )))
        }
        Verdict::Done | Verdict::Partial { .. } if counts.failed > 0 || counts.skipped > 0 => {
            let why = summary.failure.clone().unwrap_or_else(|| "they are parked".to_owned());
            let message = format!(
                "{} of {} units are not applied: {why}",
                counts.failed + counts.skipped,
                summary.discovered
            );
            // Units in doubt stay in doubt, however often the others are tried.
            Verdict::Partial { message, again: counts.failed > summary.held_in_doubt }
        }
        result => result,
    }
}
