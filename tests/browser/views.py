"""How somebody looks at a page: how wide, light or dark, with or without motion and JavaScript.

Each is a fixture that a test may set; these marks set them to all values that matter.
"""

from dataclasses import dataclass
from typing import Final, Literal

import pytest

Scheme = Literal["light", "dark"]
Motion = Literal["no-preference", "reduce"]

HEIGHTS: Final = {360: 780, 1280: 800, 2560: 1440}
"""Width to height in pixels: a telephone, a laptop, a large screen."""


@dataclass(frozen=True)
class View:
    width: int = 1280
    scheme: Scheme = "light"
    motion: Motion = "no-preference"
    javascript: bool = True

    @property
    def height(self) -> int:
        return HEIGHTS.get(self.width, 800)


every_width = pytest.mark.parametrize("width", list(HEIGHTS))
every_scheme = pytest.mark.parametrize("scheme", ["light", "dark"])
reduced_motion = pytest.mark.parametrize("motion", ["reduce"])
without_javascript = pytest.mark.parametrize("javascript", [False], ids=["no-javascript"])
