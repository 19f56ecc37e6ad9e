-- The jobs of a project that have units here: one probe of the index for each job, however many ledgers it has.
-- $1 project; by ledgers_are_unique
with recursive jobs (job) as (
    select min(job) from refrain_ledgers where project = $1
    union all
    select (select min(ledgers.job) from refrain_ledgers as ledgers
            where ledgers.project = $1 and ledgers.job > jobs.job)
    from jobs where jobs.job is not null
)
select jobs.job from jobs where jobs.job is not null order by jobs.job
