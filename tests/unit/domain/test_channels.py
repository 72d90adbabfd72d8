from __future__ import annotations

import pytest

from fanin.domain.channels import check_channel
from fanin.errors import ChannelRefused


def test_a_fifo_queue_is_no_channel() -> None:
    check_channel("https://sqs/fifo")
    for channel in ("https://sqs/q.fifo", "arn:aws:sqs:eu-west-1:123456789012:q.fifo"):
        with pytest.raises(ChannelRefused, match="use a standard queue"):
            check_channel(channel)
