from __future__ import annotations

from fanin.adapters.memory import Memory
from fanin.app.ports.inspection import QueueReport


def test_it_reports_what_it_was_given_and_cannot_see_the_rest() -> None:
    memory = Memory()
    memory.inspection.reports["a"] = QueueReport("a", dead=3)

    known, unknown = memory.inspection.look(["a", "b"])

    assert known.dead == 3
    assert unknown.unseen == ("its figures (no report)",)
    assert memory.accesses.sends["inspection.look"] == 2
