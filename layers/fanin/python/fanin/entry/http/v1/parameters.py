"""Parameters and errors that routes have in common."""

from typing import Any, Final

from fanin import names
from fanin.domain import limits
from fanin.entry.http.route import HttpRequest
from fanin.wire.json_types import IDEMPOTENCY_KEY, JsonType, text, whole

CURSOR: Final = text(least=1).with_keywords(description="of the page before; without one, the first page")
KEY: Final = {names.IDEMPOTENCY_HEADER: IDEMPOTENCY_KEY}


def batch_made(_: HttpRequest, made: Any) -> str:
    """The path of the batch that a call has opened, or has added items to."""
    return f"{names.API_ROOT}/batches/{made.batch_id}"


def paged(most: int = limits.MAX_PAGE, default: int = 100) -> dict[str, JsonType[Any]]:
    """Query parameters of a listing."""
    return {"cursor": CURSOR, "limit": whole(1, most).with_keywords(default=default)}
