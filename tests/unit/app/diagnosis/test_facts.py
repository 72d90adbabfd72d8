from __future__ import annotations

from dataclasses import replace

import pytest

from fanin.app.diagnosis.gathering import Facts
from fanin.domain.batch import Batch

NOW = 1_790_000_000_000
BATCH = Batch(7, b"s" * 16, NOW, NOW, 0, 7_200, 7_200, items=100, stall_after=400)
"""Its step is 100 seconds."""
STEP = 100_000


@pytest.mark.parametrize(
    ("after", "recent", "quiet"),
    [
        (0, True, False),
        (STEP + 60_000, True, False),
        (STEP + 60_001, False, False),
        (STEP + 399_999, False, False),
        (STEP + 400_000, False, True),
    ],
)
def test_activity_may_have_been_a_step_later_than_the_row_says(after: int, recent: bool, quiet: bool) -> None:
    facts = Facts(BATCH, NOW + after, 0, 100, begun=True)

    assert (facts.recent, facts.quiet) == (recent, quiet)
    assert facts.moving is not quiet
    assert not replace(facts, begun=False).moving


def test_a_batch_that_never_stalls_is_quiet_after_a_tenth_of_its_idle_time() -> None:
    batch = replace(BATCH, stall_after=0)

    assert not Facts(batch, NOW + 2 * 720_000 - 1, 0, 100).quiet
    assert Facts(batch, NOW + 2 * 720_000, 0, 100).quiet
