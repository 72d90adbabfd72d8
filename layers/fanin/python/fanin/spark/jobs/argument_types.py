"""Types of arguments whose text a function of the library reads, and refuses with ``InvalidRequest``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

from fanin.domain.totals import check_names
from fanin.errors import InvalidRequest

_T = TypeVar("_T")


def argument(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Make the ``type`` of an argument, so that argparse says why its text was refused.

    Args:
        parse: reads the text; raises ``InvalidRequest``.
    """

    def read(text: str) -> _T:
        try:
            return parse(text)
        except InvalidRequest as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


@argument
def names_of_totals(text: str) -> tuple[str, ...]:
    """The value of ``--totals``: at most four different names of totals, divided by commas."""
    return check_names([name.strip() for name in text.split(",")])
