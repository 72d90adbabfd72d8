"""The routes of diagnostics: why a batch is not finished, and the notes that help to say it."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Diagnostics
from fanin.domain.access import AccessGroup
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute, Repeat
from fanin.entry.http.v1.parameters import paged
from fanin.errors import GONE
from fanin.wire import batches, items

_BATCH: Final = f"{names.API_ROOT}/batches/{{batch_id}}"


# fmt: off
ROUTES: Final = (
    HttpRoute(
        "GET", f"{_BATCH}/diagnosis", "diagnoseBatch", "Why a batch is not finished", Call(Diagnostics.why),
        items.DIAGNOSIS, errors=GONE,
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "GET", f"{names.API_ROOT}/attention", "listAttention", "Batches that a person should look at",
        Call(Diagnostics.attention), batches.ATTENTION, optional=paged(),
        group=AccessGroup.READ,
    ),
    HttpRoute(
        "POST", f"{_BATCH}/sent", "noteSent", "Note that a queue has accepted the messages of items",
        Call(Diagnostics.note_sent, "sent"), None, 204, body=items.SENT, errors=GONE,
        data_path=True,
        group=AccessGroup.PRODUCE,
    ),
    HttpRoute(
        "POST", f"{names.API_ROOT}/retries", "noteRetries", "Note failed attempts whose messages come again",
        Call(Diagnostics.note_retries, "retries"), None, 204, body=items.RETRIES, errors=GONE,
        repeat=Repeat.LATE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
