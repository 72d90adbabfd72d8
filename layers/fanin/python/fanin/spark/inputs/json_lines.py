"""JSON as RFC 8259 has it: Spark's reader takes other quotes too, and ignores what follows a value."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's documentation calls it
from pyspark.sql.types import StringType, StructField, StructType

from fanin.domain.limits import chunks
from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import Dialect
from fanin.spark.inputs.listing import load
from fanin.spark.inputs.names import case_sensitive
from fanin.spark.runtime.arrow import ArrowBatches, Task, page
from fanin.spark.runtime.unreadable import LINE, PROBLEM

TEXT: Final = "_fanin_text"
"""Column with the text of an object, as it came; null where it cannot be read."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_ROWS: Final = 1_000
"""Rows of a page; objects may be large."""
_Row: TypeAlias = tuple[str | None, ...]
"""The fields of an object, ``TEXT``, ``LINE`` and ``PROBLEM``."""


class _Number(str):
    """A number as it was written: a double would not hold all of them."""

    __slots__ = ()


class _Pairs(list[tuple[str, Any]]):
    """An object, which may have a name more than once."""


def read_json(
    spark: SparkSession, paths: Sequence[str], dialect: Dialect, names: Sequence[str], folder: str | None
) -> DataFrame:
    """Read files of JSON: each field as text, ``TEXT``, ``LINE`` and ``PROBLEM``."""
    if dialect.wide and not dialect.multiline:
        raise InvalidRequest(
            f"lines of JSON cannot be told apart in {dialect.encoding}; convert the files to UTF-8, or pass"
            " --multiline for files that are one array or one object"
        )
    texts = load(spark.read.format("text").option("wholetext", dialect.multiline), folder, paths)
    schema = StructType([StructField(name, StringType()) for name in (*names, TEXT, LINE, PROBLEM)])
    task = objects_task(names, dialect.codec, whole=dialect.multiline, exact=case_sensitive(spark))
    return texts.select(F.col("value").cast("binary")).mapInArrow(task, schema)


def objects_task(names: Sequence[str], codec: str, *, whole: bool, exact: bool) -> Task:
    """Make the function of a task that reads JSON."""
    fields = {name if exact else name.lower(): place for place, name in enumerate(names)}
    schema = pa.schema([(name, pa.string()) for name in (*names, TEXT, LINE, PROBLEM)])

    def run(records: Iterable[ArrowBatches]) -> Iterator[ArrowBatches]:
        texts = (raw for record in records for raw in record.column(0).to_pylist())
        rows = (row for raw in texts for row in objects(raw, codec, fields, whole=whole, exact=exact))
        return map(partial(page, schema), chunks(rows, max_items=_ROWS))

    return run


def objects(raw: bytes, codec: str, fields: dict[str, int], *, whole: bool, exact: bool) -> Iterator[_Row]:
    """The objects of a line, or of a file; blank lines have none."""
    nothing = (*([None] * len(fields)), None)
    try:
        text = raw.decode(codec).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        why = f"it has bytes that are not {codec}, at {error.start}; name its encoding"
        yield *nothing, raw.decode(codec, errors="replace"), why
        return
    if not text.strip(" \t\r\n"):  # what JSON takes for blank, and no other space
        return
    at = 0
    try:
        for start, stop, found in _parsed(text, whole=whole):
            yield *_values(found, fields, exact=exact), text[start:stop], None, None
            at = stop
    except RecursionError:
        yield *nothing, text[at:], "it is nested too deeply"
    except ValueError as error:
        yield *nothing, text[at:], f"it is not an object of JSON: {error}"


def _parsed(text: str, *, whole: bool) -> Iterator[tuple[int, int, _Pairs]]:
    start = at = _space(text, 0)
    array = whole and text[at : at + 1] == "["
    if array:
        at = _space(text, at + 1)
        if text[at : at + 1] == "]":
            return _end(text, at + 1)
    while True:
        found, stop = _DECODER.raw_decode(text, at)
        if not isinstance(found, _Pairs):
            told = "its values are not all objects" if array else "it is another value"
            raise ValueError(told)  # noqa: TRY004  like all else that is wrong with a text
        if not array:
            _end(text, stop)
            yield start, len(text) if not whole else stop, found
            return None
        yield at, stop, found
        at = _space(text, stop)
        if text[at : at + 1] == "]":
            return _end(text, at + 1)
        if text[at : at + 1] != ",":
            raise ValueError(f"there is no comma at character {at}")
        at = _space(text, at + 1)


def _end(text: str, at: int) -> None:
    at = _space(text, at)
    if at < len(text):
        raise ValueError(f"there is more behind its end, at character {at}")


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _values(found: _Pairs, fields: dict[str, int], *, exact: bool) -> list[str | None]:
    values: dict[int, str | None] = {}
    for name, value in found:
        if (place := fields.get(name if exact else name.lower())) is not None:
            if place in values:
                raise ValueError(f"it has the field {name} twice")
            values[place] = _text(value)
    return [values.get(place) for place in range(len(fields))]


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else _json(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("a text has half of a pair of surrogates") from None
    return text


def _json(value: Any) -> str:
    """A value as JSON, its numbers as they were written."""
    if isinstance(value, _Number):
        return value
    if isinstance(value, _Pairs):
        return f"{{{', '.join(f'{_json(name)}: {_json(one)}' for name, one in value)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_json, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER: Final = json.JSONDecoder(
    parse_float=_Number, parse_int=_Number, parse_constant=_constant, object_pairs_hook=_Pairs
)
