#!/bin/sh
[ "$1" != 13 ] || { echo "no customer has invoice $1" >&2; exit 1; }
