"""How somebody looks at a page: with or without motion and JavaScript.

Both are fixtures that a test may set; these marks set them.
"""

from dataclasses import dataclass
from typing import Final, Literal

import pytest

Motion = Literal["no-preference", "reduce"]

HEIGHTS: Final = {360: 780, 1280: 800, 2560: 1440}
"""Width to height in pixels: a telephone, a laptop, a large screen."""


@dataclass(frozen=True)
class View:
    motion: Motion = "no-preference"
    javascript: bool = True


reduced_motion = pytest.mark.parametrize("motion", ["reduce"])
without_javascript = pytest.mark.parametrize("javascript", [False], ids=["no-javascript"])
