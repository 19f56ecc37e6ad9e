-- What became of an effect: who sends it, since when, how it ended.
--
-- `holder` is the worker that has reserved it, and only while it is reserved; `nonce` tells this reservation from every other one, for
-- a worker that did not learn whether it was committed. `sends` counts the reservations; an answer is recorded under that number, so a
-- late one is recognised. `first_sent_at` and `last_sent_at` are when it was reserved for its first and its
-- last send: a provider remembers a key from the first on. `unanswered_at` is when it was reserved for the first send that has had no
-- answer since. `changed_at` is when it got its state. `receipt` is what the receiver answered, `message` why it is refused, in doubt
-- or suppressed.
alter table refrain.effects
    add column holder        bigint,
    add column nonce         text collate "C",
    add column sends         integer not null default 0,
    add column first_sent_at bigint,
    add column last_sent_at  bigint,
    add column unanswered_at bigint,
    add column changed_at    bigint,
    add column receipt       text collate "C",
    add column message       text collate "C";

-- Versions of one fact are sent one after the other.
create unique index effects_one_sender on refrain.effects (key) where state in ('reserved', 'in-doubt');
create index effects_holder on refrain.effects (holder, key, version) where holder is not null;
-- What needs an operator, or is not sent.
create index effects_open on refrain.effects (state, id) where state in ('waiting', 'refused', 'in-doubt', 'suppressed');

-- Whether a worker only sends effects. It begins no attempt, and its process may have other things to do: when it is silent, its effects
-- are in doubt, and its process is left alone.
alter table refrain.workers add column sends boolean not null default false;
