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

CELL: Final = answer(
    "PictureCell",
    Cell,
    number=t.NATURAL.described("of the word on its level, one below that of the node"),
    start=t.NATURAL.described("ordinal of its first item"),
    stop=t.NATURAL.described("one past the ordinal of its last item"),
    parts=t.whole(1, 64).described("how many bits of its word stand for something"),
    failed_more=t.BOOLEAN.described("whether more may have failed"),
    word=t.or_null(WORD).described("which parts are pending, the lowest bit first; null if it was not read"),
)
PICTURE_ITEM: Final = answer(
    "PictureItem",
    PictureItem,
    item=t.ITEM_ID,
    leased_until=t.or_null(t.TIME),
    key=t.TEXT.described("of the item; empty if it has none"),
)
PICTURE: Final = answer(
    "Picture",
    Picture,
    batch=BATCH,
    size=t.NATURAL.described("how many items the batch has"),
    start=t.NATURAL.described("ordinal of the first item below the node"),
    stop=t.NATURAL.described("one past the ordinal of the last"),
    held_more=t.BOOLEAN.described("whether items that are shown as pending or leased may be held"),
)
