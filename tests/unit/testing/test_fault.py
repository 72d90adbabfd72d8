"""Faults that tests deal out."""

from __future__ import annotations

import pytest

from fanin.errors import InvalidRequest, ServiceUnavailable, Throttled
from fanin.testing import Fault


def test_it_happens_at_its_place_so_often_and_no_more() -> None:
    fault = Fault("words.clear", "after", times=2)
    fault("words.clear", "before")
    fault("words.read", "after")
    for _ in range(2):
        with pytest.raises(ServiceUnavailable):
            fault("words.clear", "after")
    assert fault.left == 0
    fault("words.clear", "after")


def test_some_accesses_may_go_well_first() -> None:
    fault = Fault("words.clear", skip=1, error=Throttled("slow down"))
    fault("words.clear", "before")
    with pytest.raises(Throttled):
        fault("words.clear", "before")


@pytest.mark.parametrize(("call", "moment"), [("clear", "before"), ("words.clear", "during")])
def test_a_fault_that_would_never_happen_is_refused(call: str, moment: str) -> None:
    with pytest.raises(InvalidRequest):
        Fault(call, moment)
