#!/bin/sh
# Writes one file a day, whole: written again, it is the same file.
set -eu
mkdir -p out
printf 'orders of %s\n' "$1" > "out/$1.csv.partial"
mv "out/$1.csv.partial" "out/$1.csv"
echo "wrote out/$1.csv"
