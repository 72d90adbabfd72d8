"""What became of messages, for a caller who wants all of them sent or none waiting."""

from __future__ import annotations

import pytest

from fanin.app.ports.queues import Offered
from fanin.errors import Throttled


def test_each_message_is_answered_in_its_place() -> None:
    assert Offered({1: "gone"}, {}).answers(3) == [None, "gone", None]
    assert Offered({}, {}).answers(0) == []


def test_messages_that_wait_are_an_error_that_says_why() -> None:
    with pytest.raises(
        Throttled, match=r"^queues did not accept 2 messages \(busy\); try again later$"
    ) as error:
        Offered({0: "gone"}, {1: "busy", 2: "busy, too"}).answers(3)
    assert error.value.retry_after == 1
