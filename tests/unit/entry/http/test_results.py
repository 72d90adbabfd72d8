"""What actions did: numbers and the service's own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.ledger.service import LedgerService
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.redrives import RedriveState, Redriving
from fanin.domain.reports import ReleasedItems, Verdict
from fanin.domain.targets import TargetReport, TargetReports, TargetState, TargetType, When
from fanin.entry.http import results


@pytest.fixture
def batch(ledger: LedgerService) -> Batch:
    return replace(ledger.open(OpenBatch(user_key="secret")), items=5, state=State.CANCELLED)


@pytest.mark.parametrize(("cursor", "more"), [(None, False), ("secret", True)])
def test_of_a_release_and_a_verdict_whether_there_is_more(batch: Batch, cursor, *, more: bool) -> None:
    assert results.of_release(ReleasedItems(batch, 4, cursor)) == {
        "released": 4,
        "more": more,
        "state": "cancelled",
        "items": 5,
    }
    assert results.of_verdict(Verdict(batch, 3, ("one", "two"), repaired=True, cursor=cursor)) == {
        "disagreements": 2,
        "repaired": True,
        "pending": 3,
        "more": more,
    }


def test_of_a_redrive_without_the_texts_of_its_selection() -> None:
    redrive = Redriving(
        "d1", 7, 8, RedriveState.FINISHED, 5, 1, 2, (3, 4), {"x": 6, "y": 7}, errors=("secret",)
    )
    assert results.of_redrive(redrive) == {
        "batch_id": 8,
        "redrive": "d1",
        "state": "finished",
        "items": 5,
        "already": 1,
        "not_kept": 2,
        "refused": 13,
    }
    assert "batch_id" not in results.of_redrive(replace(redrive, batch_id=None))


def test_of_targets_how_many_are_in_which_state() -> None:
    states = (TargetState.PENDING, TargetState.DELIVERED, TargetState.PENDING)
    reports = [TargetReport(n, TargetType.SQS, When.ANY, "secret", state) for n, state in enumerate(states)]
    assert results.of_targets(TargetReports(reports)) == {"targets": 3, "delivered": 1, "pending": 2}
    assert results.of_targets(TargetReports(())) == {"targets": 0}
