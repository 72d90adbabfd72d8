"""What is read of a reply channel, and that everything on it is deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fanin.client.frames.sqs_notices import queue_notices
from fanin.client.frames.transport import Notice
from fanin.errors import InvalidRequest
from tests.unit.client.conftest import Faulty


def test_notices_are_read_and_everything_is_deleted(sqs: Any, queue: str) -> None:
    # Given a notice among messages of others
    bodies = [
        "nonsense",
        "[]",
        "[" * 200_000,
        json.dumps({"type": "Complete Frame"}),
        json.dumps({"type": ["Complete Frame"], "frame_id": 7}),
        json.dumps({"type": "Complete Frame", "frame_id": [7]}),
        json.dumps({"type": "Repeat Requested", "frame_id": 7, "size": 3, "missing": []}),
    ]
    for body in bodies:
        sqs.send_message(QueueUrl=queue, MessageBody=body)
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"VisibilityTimeout": "0"})
    # When, then
    notices = queue_notices(sqs, queue)
    assert list(notices()) == [Notice("Repeat Requested", 7)]
    assert list(notices()) == []
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)


@pytest.mark.parametrize(("options", "wait"), [({}, 0), ({"wait": 1}, 1)])
def test_an_empty_reply_channel_is_only_read(
    faulty: Faulty, queue: str, options: dict[str, int], wait: int
) -> None:
    assert list(queue_notices(faulty, queue, **options)()) == []  # type: ignore[arg-type]
    asked = {"QueueUrl": queue, "MaxNumberOfMessages": 10, "WaitTimeSeconds": wait}
    assert faulty.requests == [("receive_message", asked)]


def test_a_wait_or_a_url_that_sqs_does_not_take_is_refused(faulty: Faulty, queue: str) -> None:
    for wait in (-1, 21):
        with pytest.raises(InvalidRequest, match="wait must be a whole number from 0 to 20"):
            queue_notices(faulty, queue, wait=wait)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="queue_url has one half of a surrogate pair"):
        queue_notices(faulty, "https://sqs/\ud800")  # type: ignore[arg-type]
