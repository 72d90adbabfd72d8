"""All shapes of the API by their names: the components of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from fanin.wire import (
    batches,
    buffers,
    carlyle,
    directory,
    frames,
    items,
    marks,
    messages,
    picture,
    problems,
    redrives,
    scatters,
)
from fanin.wire.json_types import Schema
from fanin.wire.shapes import Shape


def components(shapes: Iterable[Shape[Any]]) -> dict[str, Schema]:
    """Collect the definitions of shapes by their names.

    Raises:
        ValueError: two shapes have one name.
    """
    found: dict[str, Shape[Any]] = {}
    for shape in shapes:
        if found.setdefault(shape.component, shape) is not shape:
            raise ValueError(f"two shapes are called {shape.component}; name one after what it is for")
    return {name: shape.definition for name, shape in found.items()}


SHAPES: Final[tuple[Shape[Any], ...]] = tuple(
    shape
    for module in (
        batches,
        messages,
        items,
        marks,
        picture,
        redrives,
        scatters,
        frames,
        buffers,
        directory,
        carlyle,
        problems,
    )
    for shape in module.SHAPES
)
COMPONENTS: Final = components(SHAPES)
