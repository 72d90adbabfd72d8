"""Shapes of the bit picture: a node of the summary tree, its cells and items."""

from typing import Final

from fanin.domain.picture import Cell, ItemState, Picture, PictureItem
from fanin.wire.batches import BATCH
from fanin.wire.json_types import (
    BOOLEAN,
    ITEM_ID,
    NATURAL,
    TEXT,
    TIME,
    JsonType,
    many,
    one_of,
    or_null,
    whole,
)
from fanin.wire.shapes import answer

WORD: Final[JsonType[int]] = JsonType(
    {"type": "string", "pattern": "^[0-9a-f]{16}$"}, "{:016x}".format, lambda text: int(text, 16)
)
"""The 64 bits of a word in hexadecimal, since many JSON readers cut numbers off after 53 bits."""

CELL: Final = answer(
    "PictureCell",
    Cell,
    number=NATURAL.with_keywords(description="of the word on its level, one below that of the node"),
    start=NATURAL.with_keywords(description="ordinal of its first item"),
    stop=NATURAL.with_keywords(description="one past the ordinal of its last item"),
    parts=whole(1, 64).with_keywords(description="how many bits of its word stand for something"),
    done_min=NATURAL,
    done_max=NATURAL,
    failed=NATURAL,
    failed_more=BOOLEAN.with_keywords(description="whether more may have failed"),
    word=or_null(WORD).with_keywords(
        description="which parts are pending, the lowest bit first; null if it was not read"
    ),
)
PICTURE_ITEM: Final = answer(
    "PictureItem",
    PictureItem,
    ordinal=NATURAL,
    item=ITEM_ID,
    state=one_of(ItemState),
    leased_until=or_null(TIME),
    key=TEXT.with_keywords(description="of the item; empty if it has none"),
)
PICTURE: Final = answer(
    "Picture",
    Picture,
    batch=BATCH,
    level=NATURAL,
    number=NATURAL,
    root_level=NATURAL,
    size=NATURAL.with_keywords(description="how many items the batch has"),
    start=NATURAL.with_keywords(description="ordinal of the first item below the node"),
    stop=NATURAL.with_keywords(description="one past the ordinal of the last"),
    cells=many(CELL),
    items=many(PICTURE_ITEM),
    held_more=BOOLEAN.with_keywords(
        description="whether items that are shown as pending or leased may be held"
    ),
)
