"""Which fleets have a series of their own in charts."""

import pytest

from examples.fleet.analytics.charts import COLOURS
from examples.fleet.analytics.contents import charted


@pytest.mark.parametrize(("fleets", "own"), [(0, 0), (1, 1), (COLOURS, COLOURS), (COLOURS + 1, COLOURS - 1)])
def test_the_largest_fleets_have_a_colour_of_their_own(fleets: int, own: int) -> None:
    # Given fleets, the largest first, when there are more than colours, then one colour is for the others
    names = [f"f{n}" for n in range(fleets)]
    assert list(charted(names)) == names[:own]
