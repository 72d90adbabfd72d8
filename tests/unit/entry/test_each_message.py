from __future__ import annotations

from fanin.entry.each_message import handle_each
from fanin.entry.partial_batch import SqsRecord
from fanin.errors import Throttled


def test_a_message_that_fails_comes_again_and_holds_up_no_other() -> None:
    # Given messages of which one meets a busy store, and one brings a defect to light
    event = {"Records": [{"messageId": name, "body": name} for name in ("good", "busy", "defect", "last")]}
    handled: list[str] = []

    def handle(message: SqsRecord) -> None:
        if message["body"] == "busy":
            raise Throttled("busy")
        if message["body"] == "defect":
            raise KeyError("missing")
        handled.append(message["body"])

    # When
    response = handle_each(event, handle)

    # Then these two come again
    assert handled == ["good", "last"]
    assert response == {"batchItemFailures": [{"itemIdentifier": "busy"}, {"itemIdentifier": "defect"}]}
