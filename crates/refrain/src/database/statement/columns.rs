//! Lists of columns that several statements select, by the name under which they include them.
//!
//! Each belongs to one struct that reads such rows: a new column is added here and there.

/// Lists of columns, by the name under which statements include them.
pub(super) const COLUMNS: [(&str, &str); 4] = [
    (
        // Columns of `store::run_row::RunRow`, from `runs` and `jobs`. Releases before schema 6 write only
        // `reason`.
        "columns(run)",
        "runs.id, jobs.name as job, runs.job as job_number, runs.attempt, runs.version, runs.window_start, runs.window_end, \
         runs.opened_at, runs.started_at, runs.ended_at, runs.open, runs.key, runs.outcome, runs.message, runs.payload, \
         coalesce(runs.reason, runs.failure) as reason, runs.redo",
    ),
    (
        // Columns of `store::run_row::RunLook`, from `runs`.
        "columns(run look)",
        "runs.id, runs.job, runs.key, runs.open, runs.attempt, runs.worker, runs.outcome, \
         coalesce(runs.reason, runs.failure) as reason",
    ),
    (
        // Columns of `store::claim::Claimed`, from `queue` and `runs`.
        "columns(claimed)",
        "queue.run, queue.attempt, queue.nonce, queue.spent, queue.suspicion, queue.lane, runs.key, runs.window_start, \
         runs.window_end, runs.payload, runs.version, runs.redo",
    ),
    (
        // store::effects::EffectRow, of `effects`.
        "columns(effect)",
        "effects.id, effects.key, effects.version, effects.name, effects.state, effects.job, effects.run, effects.payload, \
         effects.arrived_at, effects.sends, effects.first_sent_at, effects.last_sent_at, effects.unanswered_at, \
         effects.changed_at, effects.receipt, effects.message, (select count(*) from refrain_effect_dedupes as dedupes \
         where dedupes.effect = effects.id) as dedupes",
    ),
];
