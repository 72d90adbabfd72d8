"""What a redrive asks for beyond a selection."""

from __future__ import annotations

import pytest

from fanin.domain.redrives import Redrive
from fanin.errors import InvalidRequest


@pytest.mark.parametrize(
    ("request_", "said"),
    [(Redrive(queue_url=""), "queue_url"), (Redrive(errors=[""], queue_url="q"), "an error")],
)
def test_a_bad_queue_is_refused_and_a_bad_selection_too(request_: Redrive, said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        request_.check()
