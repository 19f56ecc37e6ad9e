-- Records an applied migration.
-- $1 its number, $2 its name, $3 the oldest schema that a release must know from then on
insert into refrain_migrations (number, name, applied_at, oldest) values ($1, $2, (select now from refrain_clock), $3)
