"""Which paths of the API belong to which group of calls, in the form of IAM policies."""

from __future__ import annotations

import re
from collections.abc import Collection

from fanin.domain.access import AccessGroup

BATCH_ID_DIGITS = (15, 16)
"""Digits of a batch id: it begins with the time in ms, and stays below 2^53."""


def paths_of(groups: Collection[AccessGroup]) -> list[str]:
    """Method and path of the calls of some groups, with wildcards for ids and names.

    A ``*`` of IAM also matches slashes, so at the end of a path it allows everything below it. Where that
    would allow a call of another group, the path ends in as many ``?`` as a batch id has digits instead.

    Args:
        groups: of calls.
    """
    from fanin.entry.http.table import ROUTES  # noqa: PLC0415  a stack without grants need not import them

    allowed = [route for route in ROUTES if not set(route.groups).isdisjoint(groups)]
    denied = [f"{route.method}{route.path}" for route in ROUTES if route not in allowed]
    found: list[str] = []
    for route in allowed:
        path = re.sub(r"\{\w+\}", "*", f"{route.method}{route.path}")
        if any(covers(path, other) for other in denied):
            found += [f"{path.removesuffix('*')}{'?' * digits}" for digits in BATCH_ID_DIGITS]
        else:
            found.append(path)
    return [path for path in found if not any(_matches(other, path) for other in found if other != path)]


def covers(pattern: str, path: str) -> bool:
    """Whether a pattern of IAM allows a path, or the same path with a slash at its end.

    The API ignores such a slash, so ``DELETE/v1/batches/`` is the call of ``DELETE/v1/batches``.
    """
    return any(_matches(pattern, text) for text in (path, f"{path}/"))


def _matches(pattern: str, text: str) -> bool:
    regex = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(regex, text) is not None
