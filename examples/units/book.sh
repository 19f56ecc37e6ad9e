#!/bin/sh
# Books one invoice: a file of its own, whole. Written again, it is the same file.
set -eu
mkdir -p booked
printf '%s\n' "$REFRAIN_UNIT" > "booked/$1.partial"
mv "booked/$1.partial" "booked/$1.json"
echo "booked"
