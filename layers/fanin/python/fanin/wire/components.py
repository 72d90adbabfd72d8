"""All shapes of the API by their names: the components of the OpenAPI document."""

from __future__ import annotations

from typing import Final

from fanin.wire import batches, buffers, carlyle, directory, frames, items, problems, scatters
from fanin.wire.json_types import Schema
from fanin.wire.shapes import components

COMPONENTS: Final[dict[str, Schema]] = components(
    shape
    for module in (batches, items, scatters, frames, buffers, directory, carlyle, problems)
    for shape in module.SHAPES
)
