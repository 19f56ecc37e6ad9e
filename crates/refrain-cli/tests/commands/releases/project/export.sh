#!/bin/sh
[ "$1" != 2001-06-03 ] || { echo "no export of $1" >&2; exit 3; }
echo "exported $1"
