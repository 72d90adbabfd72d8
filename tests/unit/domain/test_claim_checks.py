"""Keys in the bucket."""

import pytest

from fanin.domain.batch import Batch
from fanin.domain.claim_checks import claim_key

DAY = 86_400


@pytest.mark.parametrize(("left", "days"), [(1, 2), (2 * DAY, 2), (2 * DAY + 1, 4), (400 * DAY, 366)])
def test_an_object_is_kept_at_least_as_long_as_the_row_of_its_batch(left, days):
    batch = Batch(7, b"", 0, 0, expires_at=DAY + left, open_idle_ttl=60, closed_idle_ttl=60)

    assert claim_key(batch, 3, "name", DAY * 1000) == f"days-{days}/7/3/name"
