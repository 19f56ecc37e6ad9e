#!/usr/bin/env python3
"""Prints the invoices changed since the watermark, one JSON object per line."""
import csv
import json
import os

since = os.environ.get("REFRAIN_WATERMARK", "")  # empty the first time: everything

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "invoices.csv")) as source:
    for number, updated_at, total in csv.reader(source):
        if updated_at >= since:
            print(json.dumps({"id": number, "updated_at": updated_at, "total": total}))
