"""Shapes of marks, the same on the API and on the ack queue, and of the verdicts on them.

An entry that cannot be read is refused alone: it stands in its place as ``Malformed``.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from fanin.domain import limits, marks
from fanin.domain.ids import MAX_COUNT
from fanin.domain.totals import MAX_VALUE, NAME
from fanin.errors import BY_CODE, FaninError, InvalidRequest, RequestTooLarge
from fanin.wire import json_types as t
from fanin.wire.json_text import compact, read_json
from fanin.wire.messages import KEPT_MESSAGE
from fanin.wire.shapes import Shape, answer, plain, request, wrapped

VALUES: Final = t.map_of(
    t.whole(-MAX_VALUE, MAX_VALUE), propertyNames={"pattern": f"^{NAME}$"}
).left_out_if_empty()
"""What an item adds to each total of its batch."""
DONE: Final = request("Done", marks.Done, item=t.ITEM_ID, totals=VALUES, result=t.ANYTHING.left_out_if(None))
FAILURE: Final = request(
    "Failure",
    marks.Failure,
    item=t.ITEM_ID.called("failed"),
    reason=t.text(limits.MAX_REASON).left_out_if_empty(),
    message=KEPT_MESSAGE.left_out_if_empty(),
    attempts=t.whole(0, limits.MAX_ATTEMPTS).left_out_if_empty(),
    source=t.text(limits.MAX_CHANNEL).left_out_if_empty(),
    totals=VALUES,
)
RANGE: Final = request(
    "ItemRange",
    marks.ItemRange,
    group=t.TEXT.described("<batch id>:<group id>"),
    start=t.whole(0, MAX_COUNT).called("from"),
    stop=t.or_null(t.whole(1, MAX_COUNT)).called("to"),
)
COUNT: Final = request(
    "CountItems", marks.Count, batch_id=t.BATCH_ID, n=t.whole(1, MAX_COUNT).called("count"), totals=VALUES
)

_BY_FIELD: Final[dict[str, Shape[Any]]] = {"failed": FAILURE, "item": DONE, "group": RANGE, "count": COUNT}
"""The field that tells what kind of mark an object is."""
_SHAPES: Final[tuple[Shape[Any], ...]] = (DONE, FAILURE, RANGE, COUNT)


def _encode(mark: marks.Mark) -> str | t.Json:
    if isinstance(mark, str):
        return mark
    if isinstance(mark, marks.Malformed):
        raise mark.error
    shape = next(shape for shape in _SHAPES if isinstance(mark, shape.stands_for))
    body: t.Json = shape.encode(mark)
    return body


def _decode(entry: Any) -> marks.Mark:
    if isinstance(entry, str):
        return entry
    try:
        return marks.checked(_read(entry))
    except InvalidRequest as error:
        return marks.Malformed(error)


def _read(entry: Any) -> marks.Mark:
    shape = next((_BY_FIELD[name] for name in _BY_FIELD if isinstance(entry, dict) and name in entry), None)
    if shape is None:
        raise InvalidRequest(
            "an entry of marks must be an item id, or an object with item, with failed, with group, or with"
            f" batch_id and count; not {limits.shown(entry)}"
        )
    try:
        _check_fields("an entry of marks", shape, entry)
        if isinstance(message := entry.get("message"), dict):
            _check_fields("the message of a failure", KEPT_MESSAGE, message)
        mark: marks.Mark = shape.decode(entry)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidRequest(
            f"an entry of marks cannot be read ({type(error).__name__}: {error}); see MarkItems in the"
            " reference of the API"
        ) from error
    return mark


def _check_fields(what: str, shape: Shape[Any], entry: t.Json) -> None:
    if unknown := [name for name in entry if name not in shape.fields]:
        known = ", ".join(shape.fields)
        raise InvalidRequest(f"{what} has the unknown field {limits.shown(unknown[0])}; known are {known}")


MARK: Final[t.JsonType[marks.Mark]] = t.JsonType(
    {"anyOf": [t.ITEM_ID.schema, *(shape.schema for shape in _SHAPES)]}, _encode, _decode
)
"""One mark; a plain item id means that the item is done."""

_MARKS: Final = t.many(MARK, limits.MAX_MARKS).with_keywords(**{t.EACH_ALONE: True})
MARKS: Final = wrapped("MarkItems", "marks", _MARKS)
"""The body of a request, and a message of the ack queue."""

RECEIPT: Final = answer("Receipt", marks.Receipt, batch_id=t.BATCH_ID, duplicates=t.many(t.ITEM_ID))

UNSETTLED: Final = plain("UnsettledMark", {"place": t.NATURAL, "code": t.TEXT, "detail": t.TEXT})
"""A mark that is not settled: its place in the request, from 0, and why."""


def _encode_unsettled(errors: marks.Unsettled) -> list[t.Json]:
    return [
        {"place": place, "code": error.code, "detail": str(error)} for place, error in sorted(errors.items())
    ]


def _decode_unsettled(entries: Iterable[t.Json]) -> dict[int, FaninError]:
    return {one["place"]: BY_CODE.get(one["code"], InvalidRequest)(one["detail"]) for one in entries}


_BY_PLACE: Final = t.JsonType[marks.Unsettled](t.many(UNSETTLED).schema, _encode_unsettled, _decode_unsettled)
MARKED: Final = answer(
    "Marked",
    marks.Marked,
    receipts=t.many(RECEIPT).called("batches"),
    refused=_BY_PLACE.described("marks that will never be taken; do not repeat them"),
    left=_BY_PLACE.described("marks for which there was no capacity or no time; repeat them"),
    unknown=_BY_PLACE.described("marks that an estimated batch may have counted; do not repeat them"),
)
"""Receipts of the batches, and what is not settled by its place."""

_MOST_BYTES: Final = limits.MAX_FAILED_MESSAGES + 64 * 1024
_AROUND: Final = 8
"""Levels that a request or an answer may put around a result."""
REQUEST_BYTES: Final = 900_000
"""Bytes of the marks of one request, as JSON; a mark that has more is a request of its own."""


def result_json(result: object) -> bytes:
    """The result of an item as it is stored: JSON in UTF-8, which can be read again within a request.

    Raises:
        InvalidRequest: it is not JSON.
        RequestTooLarge: it is too large.
    """
    text = compact(result, "the result of an item")
    try:
        read_json("[" * _AROUND + text + "]" * _AROUND)
    except InvalidRequest as error:
        raise InvalidRequest(f"the result of an item cannot be read again: {error}") from error
    content = text.encode()
    if len(content) > limits.MAX_RESULT:
        raise RequestTooLarge(
            f"the result of an item has {len(content)} bytes as JSON; it may have {limits.MAX_RESULT}: store"
            " it elsewhere, and give where it is"
        )
    return content


_PLAIN: Final = re.compile("[0-9a-f:-]*")
"""The characters of ids, none of which JSON escapes."""


def size_of(mark: marks.Mark) -> int:
    """Bytes of a mark in a request, as JSON in UTF-8.

    Raises:
        InvalidRequest: the mark is malformed.
        RequestTooLarge: its message or result is too large to be kept.
    """
    if isinstance(mark, str) and _PLAIN.fullmatch(mark):
        return 3 + len(mark)
    size = 1 + len(compact(_encode(marks.checked(mark))).encode())
    if size > _MOST_BYTES:
        raise RequestTooLarge(
            f"a mark has {size} bytes as JSON; one may have {_MOST_BYTES}: pass a"
            " shorter message or result, or none"
        )
    return size


def requests(stream: Iterable[marks.Mark], most_bytes: int = REQUEST_BYTES) -> Iterator[list[marks.Mark]]:
    """Cut a stream of marks into lists that fit one request each, reading at most one mark ahead.

    Args:
        stream: any number; a malformed one is passed on, and the ledger refuses it.
        most_bytes: most bytes of the marks of one request, as JSON.
    """
    some: list[marks.Mark] = []
    filled = heavy = 0
    for mark in stream:
        try:
            size = size_of(mark)
        except InvalidRequest:
            size = 0
        if some and (filled + size > most_bytes or heavy + marks.weight(mark) > limits.MAX_MARKS):
            yield some
            some, filled, heavy = [], 0, 0
        some.append(mark)
        filled += size
        heavy += marks.weight(mark)
    if some:
        yield some
