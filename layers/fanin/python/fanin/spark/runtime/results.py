"""What every function that does a job gives back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any


class Result:
    """What a job did; the jobs print it as their summary.

    Attributes:
        ok: whether all is well.
        rejects: rows that were left out, by reason.
        detail: what is wrong, or what to do about it; None if there is nothing to say.
    """

    ok: bool
    rejects: Mapping[str, int]
    detail: str | None

    @property
    def accounted(self) -> Mapping[str, int | None]:
        """Every row once: the first number is all others together; empty if no rows went in."""
        return {}

    def summary(self) -> dict[str, Any]:
        """The summary of the job, ready for JSON."""
        named = asdict(self)  # type: ignore[call-overload]
        told = {"ok": self.ok, "rejects": self.rejects, **named}
        told |= {"accounted": self.accounted, "detail": self.detail}
        return {name: value for name, value in told.items() if name not in _OPTIONAL or value or value == 0}


_OPTIONAL = ("detail", "accounted", "totals", "retry_of", "already")
"""What a summary leaves out where there is nothing to say."""
