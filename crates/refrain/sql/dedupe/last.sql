-- The last dedupe that was recorded.
select coalesce(max(id), 0) as id from refrain_dedupes
