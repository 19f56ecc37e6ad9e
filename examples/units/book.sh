#!/bin/sh
# Books one invoice in a file of its own, whole: a rerun writes the same file.
set -eu
mkdir -p booked
printf '%s\n' "$REFRAIN_UNIT" > "booked/$1.partial"
mv "booked/$1.partial" "booked/$1.json"
echo "booked"
