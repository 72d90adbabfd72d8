"""How full something is, as a half circle that fills from the left."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

_ARC: Final = "M 10 60 A 50 50 0 0 1 110 60"
"""From the left end over the top to the right end."""
_WHOLE: Final = 100
"""Length of the arc in the units of its dashes."""
_TICK: Final = 1.2


def gauge(parts: Mapping[str, int], limit: int, label: str) -> Markup:
    """Draw a gauge. If there is more than the limit, the whole arc is what there is, and a tick is the limit.

    Args:
        parts: class in the style sheet → amount, from the left on.
        limit: the amount that fills it.
        label: what it shows, for those who do not see it.
    """
    total = sum(parts.values())
    whole = max(total, limit, 1)
    drawn: list[Markup] = []
    start = 0.0
    for name, amount in parts.items():
        length = _WHOLE * amount / whole
        drawn.append(_dash(name, start, length))
        start += length
    at = _WHOLE * limit / whole
    drawn.append(_dash("limit", at - _TICK / 2, _TICK if total > limit else 0))
    return Markup(
        '<svg class="gauge" viewBox="0 0 120 66" role="img" aria-label="{}">'
        '<path class="rest" d="{}"/>{}</svg>'
    ).format(label, _ARC, Markup("").join(drawn))


def _dash(name: str, start: float, length: float) -> Markup:
    """A part of the arc. One without length is not seen, but there, so that a live view can change it."""
    return Markup('<path class="{}" d="{}" pathLength="{}" stroke-dasharray="0 {:.2f} {:.2f} {}"/>').format(
        name, _ARC, _WHOLE, max(start, 0), length, 2 * _WHOLE
    )
