"""Which batches a fan-out opens, and which it refuses."""

from __future__ import annotations

import pytest

from fanin.domain.batch import Kind, Mode, OpenBatch
from fanin.errors import InvalidRequest
from fanin.spark.fanout.opening import check_request


@pytest.mark.parametrize(
    ("request_", "why", "what_to_do"),
    [
        ({"limit": 5}, "cannot have a limit", "send with Tracker.batch"),
        (
            {"mode": Mode.ESTIMATED},
            "cannot have the mode estimated: such a batch has no item ids",
            "Leave mode out",
        ),
        ({"kind": Kind.SCATTER}, "opens a plain batch", "leave kind and size out"),
        ({"size": 7}, "counts its items itself", "leave kind and size out"),
    ],
)
def test_what_a_fan_out_cannot_do_is_refused_with_what_to_do(request_, why, what_to_do):
    with pytest.raises(InvalidRequest, match=why) as refused:
        check_request(OpenBatch(**request_))
    assert what_to_do in str(refused.value)


def test_a_plain_request_is_taken() -> None:
    check_request(OpenBatch(user_key="mine", parent_item="7:g:0", metadata={"a": "b"}))
