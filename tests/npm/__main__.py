"""Fetches what tests need of npm and PyPI, so that they can run without a network: python -m tests.npm.

A test fetches by itself what is missing.
"""

from __future__ import annotations

import sys

from tests.browser import axe, chromium
from tests.npm import node_programs
from tests.npm.packages import Unfetched
from tests.openapi import tools
from tests.oracle import stores


def fetch() -> str | None:
    """Fetch everything, or up to what cannot be fetched; returns why."""
    try:
        print(stores.absent() or stores.fetch(), file=sys.stderr)
        print(chromium.absent() or chromium.fetch().program, file=sys.stderr)
        print(axe.fetch(), file=sys.stderr)
        print(tools.linters(), file=sys.stderr)
        print(tools.generator(), file=sys.stderr)
        print(node_programs.modules(), file=sys.stderr)
    except Unfetched as error:
        return f"{error}\ngoing on without it; the tests that need it try again"
    return None


if __name__ == "__main__" and (reason := fetch()):
    print(reason, file=sys.stderr)
