"""Bits in Spark SQL, whose BIGINT is signed: bit 63 of a word is the sign, and nothing else is different.

``1 << n`` of an INT wraps at 32 bits, and no literal holds 2^63; so masks are made by shifting a BIGINT.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it


def word(number: str) -> Column:
    """The word that holds the bit of this number: of an item on level 0, of a word on the level above.

    Args:
        number: a column of BIGINT, 0 or more.
    """
    return F.shiftright(number, 6)


def mask(number: str) -> Column:
    """A word with the bit of this number, as a BIGINT; negative for bit 63."""
    return F.expr(f"shiftleft(1L, CAST(`{number}` & 63 AS INT))")


def union(masks: str) -> Column:
    """Aggregate: all bits of some masks."""
    return F.expr(f"bit_or(`{masks}`)")
