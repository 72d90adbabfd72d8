"""The routes of diagnostics: why a batch is not finished, and the notes that help to say it."""

from __future__ import annotations

from typing import Final

from fanin import names
from fanin.app.api import Fanin
from fanin.domain.access import AccessGroup
from fanin.domain.diagnosis import Diagnosis
from fanin.entry.http.route import Request, Route
from fanin.entry.http.v1.parameters import GONE
from fanin.wire import diagnosis

_BATCH: Final = f"{names.API_ROOT}/batches/{{batch_id}}"


def _why(fanin: Fanin, request: Request) -> Diagnosis:
    return fanin.diagnostics.why(request.batch_id)


def _note_sent(fanin: Fanin, request: Request) -> None:
    fanin.diagnostics.note_sent(request.batch_id, request.read())


def _note_retries(fanin: Fanin, request: Request) -> None:
    fanin.diagnostics.note_retries(request.read())


# fmt: off
ROUTES: Final = (
    Route(
        "GET", f"{_BATCH}/diagnosis", "diagnoseBatch", "Why a batch is not finished", _why,
        diagnosis.DIAGNOSIS, errors=GONE,
        group=AccessGroup.READ,
    ),
    Route(
        "POST", f"{_BATCH}/sent", "noteSent", "Note that a queue has accepted the messages of items",
        _note_sent, None, 204, body=diagnosis.SENT, errors=GONE,
        data_path=True,
        group=AccessGroup.PRODUCE,
    ),
    Route(
        "POST", f"{names.API_ROOT}/retries", "noteRetries", "Note failed attempts whose messages come again",
        _note_retries, None, 204, body=diagnosis.RETRIES, errors=GONE,
        data_path=True,
        group=AccessGroup.CONSUME,
    ),
)
# fmt: on
