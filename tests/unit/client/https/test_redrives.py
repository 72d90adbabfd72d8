"""Redrives over HTTPS, as they are directly."""

from __future__ import annotations

import json

from fanin.client.https.services import HttpsServices
from fanin.domain.redrives import OrdinalRange, Redrive, RedriveState, Redriving, Redrivings
from fanin.wire import redrives as wire
from tests.unit.client.https.conftest import Script, ok
from tests.unit.client.https.test_scatters import api

FOUND = Redriving(
    "a/000000",
    7,
    8,
    RedriveState.RUNNING,
    3,
    2,
    1,
    (9,),
    {"gone": 1},
    ("x",),
    (OrdinalRange(0, 5),),
    None,
    1_000,
)


def test_every_call_crosses_the_wire_and_back() -> None:
    # Given what the service would answer
    page = Redrivings((FOUND,), "next")
    script = Script(ok(wire.REDRIVING.encode(FOUND)), ok(wire.REDRIVINGS.encode(page)))
    redrives = HttpsServices(api(script)).redrives
    # When it is asked
    request = Redrive(["x"], [OrdinalRange(0, 5)], "https://sqs/a", dry_run=True)
    assert redrives.redrive(7, request) == FOUND
    assert redrives.redrives(7, cursor="c", limit=5) == page
    # Then the request says the same
    post, get = script.requests
    assert json.loads(post.body or b"") == {
        "errors": ["x"],
        "ranges": [{"from": 0, "to": 5}],
        "queue_url": "https://sqs/a",
        "dry_run": True,
    }
    assert get.url.endswith("/v1/batches/7/redrives?cursor=c&limit=5")
