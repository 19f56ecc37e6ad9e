#!/bin/sh
# units-conformance.sh PROGRAM [ARGUMENT…]
#
# Checks a program against docs/UNITS.md: runs it twice as the source of a scratch project, and checks that every line is
# well-formed, every key occurs once, and the second reading brings nothing new.
#
#   UNITS_KEY   the key of a unit, as in a job file; the default is {id}
#   UNITS_ENV   names of variables that the program needs, separated by spaces
#   REFRAIN     the refrain to use, instead of the one in PATH
#
# Exits with 0 if it conforms, 1 if it does not, 2 if it could not be tried.
set -u

say() { printf '%s\n' "$*"; }
refuse() { say "units-conformance: $*" >&2; exit 2; }
quoted() { printf "'%s' " "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

[ $# -gt 0 ] || refuse "name a program: units-conformance.sh PROGRAM [ARGUMENT…]"
refrain=${REFRAIN:-refrain}
command -v "$refrain" > /dev/null || refuse "\`$refrain\` is not in PATH; name it: REFRAIN=/path/to/refrain"
command -v "$1" > /dev/null || refuse "\`$1\` cannot be executed"
here=$(pwd)
desk=$(mktemp -d) || refuse "cannot create a folder for a scratch project"
trap 'rm -rf "$desk"' EXIT
trap 'exit 2' HUP INT TERM

mkdir "$desk/jobs"
say '[project]
name = "conformance"' > "$desk/refrain.toml"
{
    say '#!/bin/sh'
    say "cd $(quoted "$here") || exit 2"
    say "exec $(for word in "$@"; do quoted "$word"; done)"
} > "$desk/list"
chmod +x "$desk/list"

env=
for name in ${UNITS_ENV:-}; do env="$env\"$name\", "; done
[ -z "$env" ] || env="env = [$env]"

# job READING CURSOR: the second reading has a cursor of its own, and so begins anew.
job() {
    say "schedule = \"@daily\"
window = \"day\"
retry = { attempts = 1 }
$env
command = [\"./list\"]
output = \"units\"
[unit]
key = \"${UNITS_KEY:-"{id}"}\"
per = \"ever\"
command = [\"true\"]
parallel = 8"
    [ "$2" = no ] || say "[cursor]
name = \"reading-$1\""
}

# reading NUMBER CURSOR [--again]: leaves four counts in $counts.
reading() {
    job "$1" "$2" > "$desk/jobs/list.toml"
    shift 2
    "$refrain" -C "$desk" run list "$@" > "$desk/said" 2>&1
    counts=$(sed -n 's/^\([0-9]*\) processed, \([0-9]*\) skipped, \([0-9]*\) deduplicated, \([0-9]*\) failed$/\1 \2 \3 \4/p' "$desk/said" | tail -n 1)
}

fail() {
    say "does not conform: $*"
    sed 's/^/    /' "$desk/said"
    exit 1
}

cursor=no
reading 1 no
if grep -q 'the source printed a cursor, but the job has no' "$desk/said"; then
    cursor=yes
    rm -rf "$desk/.refrain"
    reading 1 yes
fi
[ -n "$counts" ] || fail "the first reading failed"
set -- $counts
! grep -q ': failed' "$desk/said" || fail "the first reading failed"
[ "$4" = 0 ] || fail "$4 lines are not units, or the command of a unit failed"
[ "$3" = 0 ] || fail "$3 keys were printed more than once"
grep -q ': done' "$desk/said" || fail "the first reading failed"
[ "$1" != 0 ] || fail "it printed no units"
units=$1
say "well-formed: $units units, each key once$([ "$cursor" = no ] || say ', pages ended by cursors')"

reading 2 "$cursor" --again
[ -n "$counts" ] || fail "the second reading failed"
set -- $counts
[ "$1 $4" = "0 0" ] || fail "the second reading brought $1 new or changed units, and $4 failures"
[ "$3" = "$units" ] || fail "the second reading brought $3 of $units units"
say "stable: the second reading is deduplicated, all $units of it"
say "conforms"
