#!/bin/sh
# Fills a store with what a release does, and writes what it left.
#
#     releases/fill.sh ./refrain releases/schema-4 sqlite
#     releases/fill.sh ./refrain releases/schema-4 postgres://…/store postgres://…/shop
#
# Executed once for a release, with its program. What it writes is never edited: a later release must be able to upgrade it.
set -eu
refrain=$(realpath "$1") into=$(realpath "$2") here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
cp -r "$here"/project/. "$work" && cd "$work"
export REFRAIN_WHO=ada@office NO_COLOR=1
if [ "$3" = sqlite ]; then
    kind=sqlite
    export STORE_URL="sqlite:store.db" SHOP_URL="sqlite:shop.db"
    shop() { sqlite3 shop.db "$1"; }
    store() { sqlite3 store.db "$1"; }
    dump() { sqlite3 "$1.db" .dump; }
    intents=refrain_intents
else
    kind=postgres
    export STORE_URL="$3" SHOP_URL="$4"
    shop() { psql -q -X -v ON_ERROR_STOP=1 "$SHOP_URL" -c "$1"; }
    store() { psql -q -X -v ON_ERROR_STOP=1 "$STORE_URL" -c "$1"; }
    dump() {
        [ "$1" = store ] && url="$STORE_URL" || url="$SHOP_URL"
        pg_dump --inserts --rows-per-insert=1000 --no-owner --no-privileges --no-comments "$url" |
            sed -e '/^--/d' -e '/^SET /d' -e '/^SELECT pg_catalog.set_config/d' -e '/^\\/d' -e '/^$/d'
    }
    intents=refrain.intents
fi
ends() { # its exit code, and the command
    code=$1 && shift
    "$refrain" "$@" && ended=0 || ended=$?
    [ "$ended" = "$code" ] || { echo "refrain $*: ended with $ended and not $code" >&2; exit 1; }
}

shop "create table orders (day date, amount bigint); create table people (name text primary key);
    create table revenue (day date, amount bigint); create table stock (sku text primary key, qty bigint);
    create table customers (id text primary key, name text);
    insert into orders values ('2001-06-01', 7), ('2001-06-01', 5), ('2001-06-02', 10);
    insert into people values ('acme'), ('bolt'); insert into stock values ('apples', 100)"
ends 0 migrate
for day in 2001-06-01 2001-06-02; do
    ends 0 run "export@$day"
    ends 0 run "revenue@$day"
    ends 0 run "stock@$day"
done
ends 0 run revenue@2001-06-01                       # a dedupe
ends 0 run stock@2001-06-02 --again --why "orders came late"
ends 0 run digest@2001-06-01
ends 1 run invoices#june                            # one unit is parked
ends 0 run customers#1
ends 0 run customers#2                              # all units are dedupes
for to in Ada Bob; do ends 0 enqueue letter --key "$to" --payload "{\"to\": \"$to\"}"; done
ends 0 enqueue letter --key Ada --payload '{"to": "Ada"}'
ends 0 run letter#Ada
ends 1 run letter#Bob
ends 0 enqueue letter --key Cyd --payload '{"to": "Cyd"}'
ends 0 cancel letter#Cyd
ends 0 enqueue letter --key Dan --payload '{"to": "Dan"}'
ends 1 run export@2001-06-03                        # fails, and is tried again after a long while
shop "insert into $intents (project, kind, name, key, payload) values ('shop', 'run', 'letter', 'Eve', '{\"to\": \"Eve\"}'),
    ('shop', 'effect', 'mail', 'mail:1', '{\"to\": \"ada\"}')"
ends 0 run letter#Dan                               # relays them
for job in digest revenue stock export; do ends 0 pause "$job"; done
ends 0 checkpoint set invoices cursor page-1
# A worker that is killed in the middle of a command that must not be executed twice, and never comes back.
"$refrain" run payment@2001-06-01 & running=$!
while [ ! -e begun ]; do sleep 0.05; done
ends 75 run payment@2001-06-02 --wait 1s            # waits in the lane
kill -KILL $running && wait $running || true
ends 0 status

# A store knows its place, which is that of this machine.
[ $kind = sqlite ] && store "update refrain_store set place = null" || store "update refrain.store set place = null"
for database in store shop; do
    dump $database | sed -e "s|$work|/srv/shop|g" -e 's|@127.0.0.1:[0-9]*|@db:5432|g' > "$into/$database.$kind.dump"
done
rm -r "$work"
