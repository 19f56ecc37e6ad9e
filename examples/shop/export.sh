#!/bin/sh
# Writes one file per day, whole: a rerun writes the same file.
set -eu
mkdir -p out
printf 'orders of %s\n' "$1" > "out/$1.csv.partial"
mv "out/$1.csv.partial" "out/$1.csv"
echo "wrote out/$1.csv"
