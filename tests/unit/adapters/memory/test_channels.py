"""Users' queues in memory."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.channels import Outgoing
from fanin.errors import ChannelRefused


def test_messages_are_kept_in_order_with_their_times() -> None:
    clock = FixedClock(5)
    memory = Memory(clock=clock)
    memory.channels.queues["q"] = []
    first, second = Outgoing("q", "a", {}), Outgoing("q", "b", {"k": "v"})

    memory.channels.send([first])
    clock.advance(7)
    memory.channels.send([second])

    assert memory.channels.queues == {"q": [first, second]}
    assert memory.channels.times == {"q": [5, 12]}


def test_a_message_to_no_queue_is_refused_and_the_others_are_sent() -> None:
    memory = Memory()
    memory.channels.queues["q"] = []

    refused = memory.channels.send([Outgoing("none", "a", {}), Outgoing("q", "b", {})])

    assert refused == ["there is no such queue", None]
    assert [message.body for message in memory.channels.queues["q"]] == ["b"]
    assert memory.accesses.sends["channels.send"] == 2


def test_only_a_queue_that_is_there_resolves() -> None:
    memory = Memory()
    memory.channels.queues["q"] = []

    assert memory.channels.resolve("q") == "q"
    with pytest.raises(ChannelRefused, match="fanin:channel"):
        memory.channels.resolve("none")
