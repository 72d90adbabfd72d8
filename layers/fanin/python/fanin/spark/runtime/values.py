"""Numbers as people give them: whole ones of Python and numpy, and texts of digits."""

from operator import index
from typing import Any

from fanin.domain.ids import MAX_BATCH_ID
from fanin.domain.limits import shown
from fanin.errors import InvalidRequest


def whole(what: str, given: Any, least: int = 0, most: int | None = None) -> int:
    """Read a whole number."""
    digits = isinstance(given, str) and given.isascii() and given.isdigit()
    try:
        found = least - 1 if isinstance(given, bool) else index(int(given) if digits else given)
    except TypeError:
        found = least - 1
    if found < least or (most is not None and found > most):
        bound = f"of at least {least}" if most is None else f"from {least} to {most:,}"
        raise InvalidRequest(f"{what} must be a whole number {bound}, not {shown(given)}")
    return found


def id_of_batch(given: Any) -> int | None:
    """Read the id of the batch of all rows, if they have one."""
    return None if given is None else whole("batch_id", given, 0, MAX_BATCH_ID)
