-- Workers that do not exist and have leases: one index lookup for each worker that has any.
-- $1 limit; by leases_worker
with recursive holders (worker) as (
    select min(worker) from refrain_leases
    union all
    select (select min(leases.worker) from refrain_leases as leases where leases.worker > holders.worker)
    from holders where holders.worker is not null
)
select holders.worker as id, '' as process, false as sends
from holders left join refrain_workers as workers on workers.id = holders.worker
where holders.worker is not null and workers.id is null
order by holders.worker
limit $1
