"""Where messages can be sent again."""

from __future__ import annotations

from fanin.app.redrives.planning import Destinations
from tests.unit.app.redrives.conftest import QUEUE, Failed


def looked_at(failed: Failed, monkeypatch) -> list[str]:
    """The queues that are looked at from now on."""
    looks: list[str] = []
    resolve = failed.memory.channels.resolve

    def look(channel: str, *, new: bool, again: bool) -> str:
        assert not new  # a queue that messages came from is no new one, so a refusal is not doubted
        looks.append(channel)
        return resolve(channel, new=new, again=again)

    monkeypatch.setattr(failed.memory.channels, "resolve", look)
    return looks


def test_a_queue_is_looked_at_once_a_minute(failed: Failed, monkeypatch) -> None:
    # Given a queue that is there
    looks = looked_at(failed, monkeypatch)
    queues = Destinations(failed.ports)
    assert (queues.url(QUEUE), queues.refusal(QUEUE), len(looks)) == (QUEUE, None, 1)
    # When it is gone
    del failed.memory.channels.queues[QUEUE]
    # Then that is seen a minute later
    assert queues.refusal(QUEUE) is None
    failed.clock.advance(60_000)
    assert QUEUE in (queues.refusal(QUEUE) or "")
    assert queues.url(QUEUE) is None


def test_only_the_thousand_queues_that_were_looked_at_last_are_remembered(
    failed: Failed, monkeypatch
) -> None:
    # Given failures from a thousand queues, none of which is there
    looks = looked_at(failed, monkeypatch)
    queues = Destinations(failed.ports)
    names = [f"https://sqs/{n}" for n in range(1_001)]
    for name in [*names[:1_000], *names[:1_000]]:
        assert queues.url(name) is None
    assert looks == names[:1_000]
    # When there is one more
    queues.url(names[1_000])
    # Then the first is forgotten, and no other
    queues.url(names[1])
    assert looks == names
    queues.url(names[0])
    assert looks == [*names, names[0]]


def test_a_long_refusal_is_cut(failed: Failed) -> None:
    """Refusals are stored in the record of the redrive, up to twenty-one of them."""
    why = Destinations(failed.ports).refusal("https://sqs/" + "x" * 1_000) or ""
    assert why.startswith("there is no queue 'https://sqs/xxx")
    assert len(why) == 300
