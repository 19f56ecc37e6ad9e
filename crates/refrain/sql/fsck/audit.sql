-- Decisions about a run that does not exist.
-- $1 limit; a scan
select audit.id from refrain_audit as audit
where audit.run is not null and not exists (select 1 from refrain_runs as runs where runs.id = audit.run)
order by audit.id
limit $1
