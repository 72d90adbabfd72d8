"""Prints the OpenAPI document."""

import json
import sys

from fanin.entry.http.openapi import document
from fanin.entry.http.table import ROUTES

if __name__ == "__main__":
    json.dump(document(ROUTES), sys.stdout, indent=2)
    sys.stdout.write("\n")
