"""Shapes of the bit picture: a node of the summary tree, its cells and items."""

from typing import Final

from fanin.domain.picture import Cell, Picture, PictureItem
from fanin.wire import json_types as t
from fanin.wire.batches import BATCH
from fanin.wire.shapes import answer

WORD: Final[t.JsonType[int]] = t.JsonType(
    {"type": "string", "pattern": "^[0-9a-f]{16}$"}, "{:016x}".format, lambda text: int(text, 16)
)
"""The 64 bits of a word in hexadecimal, since many JSON readers cut numbers off after 53 bits."""

CELL: Final = answer("PictureCell", Cell, parts=t.whole(1, 64), word=t.or_null(WORD))
PICTURE_ITEM: Final = answer("PictureItem", PictureItem, item=t.ITEM_ID, leased_until=t.or_null(t.TIME))
PICTURE: Final = answer("Picture", Picture, batch=BATCH)
