#!/bin/sh
echo '{"id": 1}'
echo '{"id": 2}'
echo '{"$cursor": "page-1"}'
echo '{"id": 1}'
echo '{"id": 13}'
echo '{"$cursor": "page-2"}'
