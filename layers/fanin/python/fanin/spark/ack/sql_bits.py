"""Bits in Spark SQL, whose BIGINT is signed: bit 63 of a word is the sign; all other bits are as usual.

``1 << n`` of an INT wraps at 32 bits, and no literal holds 2^63; so masks are made by shifting a BIGINT.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it


def word(number: str) -> Column:
    """The number of the word that holds the bit of an item; likewise of a word, one level above it.

    Args:
        number: a column of BIGINT, 0 or more.
    """
    return F.shiftright(number, 6)


def mask(number: str) -> Column:
    """A word with the bit of this number set, as a BIGINT; negative for bit 63."""
    return F.expr(f"shiftleft(1L, CAST(`{number}` & 63 AS INT))")


def union(masks: str) -> Column:
    """Aggregate masks to their union."""
    return F.expr(f"bit_or(`{masks}`)")
