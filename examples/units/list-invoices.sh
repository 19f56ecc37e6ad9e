#!/bin/sh
# Prints invoices after the cursor, two to a page; a page ends with the number of its last invoice.
set -eu
cd "$(dirname "$0")"
awk -F, -v after="${REFRAIN_CURSOR:-}" '
    $1 > after {
        printf "{\"id\":\"%s\",\"updated_at\":\"%s\",\"total\":\"%s\"}\n", $1, $2, $3
        last = $1
        if (++count % 2 == 0) { printf "{\"$cursor\":\"%s\"}\n", last; last = "" }
    }
    END { if (last != "") printf "{\"$cursor\":\"%s\"}\n", last }
' invoices.csv
