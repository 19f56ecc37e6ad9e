#!/bin/sh
# Prints 4,000 invoices as JSON lines. While the file `slow` exists, the second half does not come.
set -eu
list() {
    awk -v from="$1" -v to="$2" 'BEGIN { for (n = from; n <= to; n++) printf "{\"id\":\"INV-%d\",\"total\":%d}\n", n, n % 100 }'
}
list 1 2000
while [ -e slow ]; do sleep 0.1; done
list 2001 4000
