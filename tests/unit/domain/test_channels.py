from __future__ import annotations

import pytest

from fanin.domain.channels import check_channel, is_fifo
from fanin.errors import ChannelRefused

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"


def test_a_fifo_queue_is_no_channel() -> None:
    check_channel("https://sqs/fifo")
    for channel in ("https://sqs/q.fifo", "arn:aws:sqs:eu-west-1:123456789012:q.fifo"):
        with pytest.raises(ChannelRefused, match="use a standard queue"):
            check_channel(channel)


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (URL, False),
        (f"{URL}.fifo", True),
        ("arn:aws:sqs:eu-west-1:123456789012:work.fifo", True),
        (f"{URL}.fifo.dead", False),
    ],
)
def test_a_fifo_queue_is_known_by_its_name(queue: str, expected: bool) -> None:
    assert is_fifo(queue) is expected
