-- Workers that do not exist and have reserved effects: one index lookup for each worker that has any.
-- $1 limit; by effects_holder
with recursive holders (worker) as (
    select min(holder) from refrain_effects where holder is not null
    union all
    select (select min(effects.holder) from refrain_effects as effects where effects.holder > holders.worker)
    from holders where holders.worker is not null
)
select holders.worker as id, '' as process, true as sends
from holders left join refrain_workers as workers on workers.id = holders.worker
where holders.worker is not null and workers.id is null
order by holders.worker
limit $1
