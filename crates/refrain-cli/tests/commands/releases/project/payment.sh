#!/bin/sh
: > begun
while [ ! -e paid ]; do sleep 0.02; done
