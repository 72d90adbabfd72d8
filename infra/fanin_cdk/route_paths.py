"""Which paths of the API belong to which group of calls, in the form of IAM policies."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from fanin.domain.access import AccessGroup

if TYPE_CHECKING:
    from fanin.entry.http.route import HttpRoute

CUT = ("*${?}*", "*%3F*", "*%3f*", "*%25*")
"""Paths with a question mark, encoded once or twice: no id and no name has one.

An API that cuts a path there after IAM has judged it would take ``POST/v1/batches/7/release?/items``, which
matches a pattern for producers, for a release. The function would see nothing of what was cut off.
"""
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
    denied = [place for route in ROUTES if route not in allowed for place in _places(route)]
    found: list[str] = []
    for place in [place for route in allowed for place in _places(route)]:
        path = re.sub(r"\{\w+\}", "*", place)
        if any(_matches(path, other) for other in denied):
            found += [f"{path.removesuffix('*')}{'?' * digits}" for digits in BATCH_ID_DIGITS]
        else:
            found.append(path)
    return [path for path in found if not any(_matches(other, path) for other in found if other != path)]


def _places(route: HttpRoute) -> list[str]:
    return [f"{route.method}{path}" for path in route.paths]


def _matches(pattern: str, text: str) -> bool:
    regex = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(regex, text) is not None
