"""Queues in memory that keep what they were sent."""

from __future__ import annotations

import pytest

from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ports.channels import Outgoing
from fanin.errors import ChannelRefused


def test_messages_are_kept_in_order_with_their_times() -> None:
    clock = FixedClock(5)
    channels = Memory(clock=clock).channels
    channels.queues["q"] = []
    one, two = Outgoing("q", "1", {}), Outgoing("q", "2", {"a": "b"})
    assert channels.send([one]) == [None]
    clock.advance(3)
    assert channels.send([two, Outgoing("gone", "3", {})]) == [None, "there is no such queue"]
    assert (channels.queues, channels.times) == ({"q": [one, two]}, {"q": [5, 8]})


def test_only_a_queue_that_is_there_is_a_channel() -> None:
    channels = Memory().channels
    channels.queues["q"] = []
    assert channels.resolve("q") == "q"
    with pytest.raises(ChannelRefused):
        channels.resolve("gone")
