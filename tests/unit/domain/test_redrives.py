"""What a redrive asks for beyond a selection."""

from __future__ import annotations

import pytest

from fanin.domain.redrives import Redrive, RedriveState, Redriving
from fanin.errors import InvalidRequest


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Redrive(queue_url=""), "^queue_url must be text of 1 to 1024 characters"),
        (Redrive(errors=[""], queue_url="q"), "^an error must be text"),
    ],
)
def test_a_bad_queue_is_refused_and_a_bad_selection_too(request_: Redrive, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        request_.check()


def test_it_is_finished_or_not() -> None:
    assert Redriving("a", 1, None, RedriveState.FINISHED).finished
    assert not Redriving("a", 1, None, RedriveState.RUNNING).finished
