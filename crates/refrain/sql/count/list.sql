-- The counts of units of a run, attempt by attempt.
-- $1 run; by the primary key
select attempt, processed, skipped, deduplicated, failed from refrain_counts where run = $1 order by attempt
