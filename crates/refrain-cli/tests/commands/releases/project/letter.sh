#!/bin/sh
[ "$1" != Bob ] || { echo "Bob has moved" >&2; exit 3; }
echo "Dear $1"
