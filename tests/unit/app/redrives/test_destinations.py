"""Where messages can be sent again."""

from __future__ import annotations

from fanin.app.redrives.destinations import Destinations
from tests.unit.app.redrives.conftest import QUEUE, Failed


def test_a_queue_is_looked_at_once_a_minute(failed: Failed, monkeypatch) -> None:
    # Given a queue that is there
    looks: list[str] = []
    resolve = failed.memory.channels.resolve

    def look(channel: str, **options: bool) -> str:
        looks.append(channel)
        return resolve(channel, **options)

    monkeypatch.setattr(failed.memory.channels, "resolve", look)
    queues = Destinations(failed.ports)
    assert (queues.url(QUEUE), queues.refusal(QUEUE), len(looks)) == (QUEUE, None, 1)
    # When it is gone
    del failed.memory.channels.queues[QUEUE]
    # Then that is seen a minute later
    assert queues.refusal(QUEUE) is None
    failed.clock.advance(60_000)
    assert QUEUE in (queues.refusal(QUEUE) or "")
    assert queues.url(QUEUE) is None


def test_a_fifo_queue_may_be_sent_to_again(failed: Failed) -> None:
    failed.memory.channels.queues["https://sqs/a.fifo"] = []
    assert Destinations(failed.ports).url("https://sqs/a.fifo") == "https://sqs/a.fifo"
