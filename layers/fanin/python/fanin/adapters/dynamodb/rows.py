"""Rows in DynamoDB's low-level form, as in the stores' requests and the tables' streams."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from types import MappingProxyType
from typing import Any, Final

from fanin import names
from fanin.app.ports.words import WordKey
from fanin.domain.batch import Batch, Cause, ChildFailures, Kind, Mode, OnDeadline, OnFailure, State, Trouble
from fanin.domain.changes import Change, Condition, Test
from fanin.domain.failures import Keep, Tolerance
from fanin.domain.totals import MAX_TOTALS

Item = Mapping[str, Any]
"""Attributes in the low-level form, such as ``{"word": {"N": "7"}}``."""

Value = int | str | bool | bytes | Mapping[str, str] | Sequence[str]

SUMS: Final = tuple(f"t{place}" for place in range(MAX_TOTALS))
"""Attributes of the sums of a batch's totals, in rows of words and of batches, in the order of the totals."""

_FIELDS: Final = tuple(field.name for field in fields(Batch))
_STORED: Final = frozenset(
    "batch_id salt created_at touched_at expires_at open_idle_ttl closed_idle_ttl state mode kind"  # noqa: SIM905
    " user_key items on_deadline pending_bound metadata acked failed failed_more partial retries"
    " stall_after".split()
)
"""Attributes that every row has. It has others where they differ from their default: most rows stay small."""
ABSENT: Final[Mapping[str, object]] = {
    one.name: one.default if one.default_factory is MISSING else one.default_factory()
    for one in fields(Batch)
    if one.name not in _STORED
}
"""Attribute → the default for which a row does not have it."""


def attribute(value: Value) -> dict[str, Any]:
    """A value with its type, such as ``{"N": "7"}``."""
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case str():
            return {"S": str(value)}
        case bytes():
            return {"B": value}
        case Mapping():
            return {"M": {name: {"S": text} for name, text in value.items()}}
        case _:
            return {"L": [{"S": text} for text in value]}


def attributes(values: Mapping[str, Value | None]) -> dict[str, Any]:
    """Values with their types; what is None is left out."""
    return {name: attribute(value) for name, value in values.items() if value is not None}


def sharded(value: str, batch_id: int) -> str:
    """Key of an index of batches by a value: the value and a shard, so that no partition becomes hot.

    A user key has at most 1,024 bytes of UTF-8; a partition key of DynamoDB may have 2,048.
    """
    return f"{value}#{batch_id % names.SHARDS}"


def encode(batch: Batch) -> dict[str, Any]:
    """Encode a batch as its row, with the keys of the indexes."""
    values = ((name, getattr(batch, name)) for name in _FIELDS)
    row = {
        name: attribute(_in_row(name, value))
        for name, value in values
        if name in _STORED or value != ABSENT[name]
    }
    row |= {name: attribute(number) for name, number in sums_of(batch.totals).items() if number}
    row[names.STATE_SHARD] = attribute(sharded(batch.state, batch.batch_id))
    row[names.DUE_AT] = attribute(batch.look_at(batch.created_at))
    if batch.attention:
        row[names.ATTENTION] = attribute(sharded(batch.attention, batch.batch_id))
    if batch.user_key:
        row[names.USER_SHARD] = attribute(sharded(batch.user_key, batch.batch_id))
    return row


def decode(row: Item) -> Batch:
    """Decode the batch of a row, or of an image in a stream record, where bytes are base64 text."""
    known = plain(row, _FIELDS)
    if "totals" in known:
        known["totals"] = {
            name: int(row[place]["N"]) if place in row else 0
            for name, place in zip(known["totals"].split(), SUMS, strict=False)
        }
    return Batch(**known)


def sums_of(totals: Mapping[str, int]) -> dict[str, int]:
    """The sums of totals by their attributes. A row of a batch has the names apart, in their order."""
    return dict(zip(SUMS, totals.values(), strict=False))


def plain(row: Item, fields: Iterable[str]) -> dict[str, Any]:
    """Those attributes that a row has, without their types."""
    return {name: _value(name, row[name]) for name in fields if name in row}


def _value(name: str, typed: Item) -> Any:
    ((kind, value),) = typed.items()
    match kind:
        case "N":
            return int(value)
        case "B":
            return base64.b64decode(value) if isinstance(value, str) else bytes(value)
        case "L":
            return [text["S"] for text in value]
        case "M":
            value = {key: text["S"] for key, text in value.items()}
    return _FROM_ROW[name](value) if name in _FROM_ROW else value


_TO_ROW: Final[Mapping[str, Callable[[Any], Value]]] = {
    "tolerated_failures": lambda one: {name: str(n) for name, n in asdict(one).items() if n is not None},
    "totals": " ".join,
    "milestones": lambda percents: " ".join(map(str, percents)),
    "totals_before": lambda totals: {name: str(number) for name, number in totals.items()},
}
"""How the fields are written whose form in a row is not that of their type."""


def _in_row(name: str, value: Any) -> Value:
    """A value of a field of a batch, as its row has it."""
    return _TO_ROW[name](value) if name in _TO_ROW else value


def _tolerance(texts: Mapping[str, str]) -> Tolerance:
    kinds: Mapping[str, Callable[[str], Any]] = {"count": int, "percent": float, "min_sample": int}
    return Tolerance(**{name: kinds[name](text) for name, text in texts.items() if name in kinds})


_FROM_ROW: Final[Mapping[str, Callable[[Any], object]]] = {
    "state": State,
    "mode": Mode,
    "kind": Kind,
    "on_deadline": OnDeadline,
    "keep": Keep,
    "on_failure": OnFailure,
    "child_failures": ChildFailures,
    "cause": Cause,
    "attention": lambda shard: Trouble(shard.partition("#")[0]),
    "milestones": lambda text: tuple(map(int, text.split())),
    "tolerated_failures": _tolerance,
    "totals_before": lambda texts: {name: int(number) for name, number in texts.items()},
}
"""How the fields are read that are texts or maps in a row, and something else in a batch."""


def word_id(key: WordKey) -> str:
    """Key of a word's row: ``<batch>/<level>/<number>``."""
    return f"{key.batch_id}/{key.level}/{key.number}"


def word_key(text: str) -> WordKey:
    """Read the key of a word's row."""
    batch_id, level, number = text.split("/")
    return WordKey(int(batch_id), int(level), int(number))


_ALIAS: Final = re.compile(r"#(\w+)")


def update_of(
    table: str,
    key: Item,
    sets: Mapping[str, Any],
    when: Sequence[Condition],
    *,
    adds: Mapping[str, int] = MappingProxyType({}),
    stays: str = "",
) -> dict[str, Any]:
    """The parameters of UpdateItem, and of an Update in a transaction.

    Attributes stand as ``#name``, in case a name is a reserved word.

    Args:
        table: its name.
        key: of the row.
        sets: attribute → new value; None for one that goes.
        when: conditions that must all hold.
        adds: attribute → number to add.
        stays: an attribute that keeps the value that it has.
    """
    values: dict[str, Any] = {}

    def placed(value: Value, place: str) -> str:
        values[place] = attribute(value)
        return place

    def said(test: Test) -> str:
        if test.is_ in {"=", "<>"} and test.value == ABSENT.get(test.field):
            return f"attribute_{'not_' if test.is_ == '=' else ''}exists(#{test.field})"
        given = test.value if test.is_ == "in" else (test.value,)
        places = ", ".join(placed(one, f":when_{len(values)}") for one in given)
        return f"#{test.field} IN ({places})" if test.is_ == "in" else f"#{test.field} {test.is_} {places}"

    def new(name: str, value: Value) -> str:
        place = placed(value, f":set_{name}")
        return f"#{name} = " + (f"if_not_exists(#{name}, {place})" if name == stays else place)

    condition = " AND ".join(f"({' OR '.join(map(said, one))})" for one in when)
    set_ = [new(name, value) for name, value in sets.items() if value is not None]
    add = [f"#{name} {placed(n, f':add_{name}')}" for name, n in adds.items()]
    remove = [f"#{name}" for name, value in sets.items() if value is None]
    parts = (("SET", set_), ("ADD", add), ("REMOVE", remove))
    update = " ".join(f"{verb} {', '.join(part)}" for verb, part in parts if part)
    return {
        "TableName": table,
        "Key": key,
        "UpdateExpression": update,
        **({"ConditionExpression": condition} if condition else {}),
        "ExpressionAttributeNames": {
            f"#{name}": name for name in dict.fromkeys(_ALIAS.findall(update + condition))
        },
        "ExpressionAttributeValues": values,
    }


def batch_key(batch_id: int) -> dict[str, Any]:
    """Key of a batch's row."""
    return {names.BATCH_ID: attribute(batch_id)}


def change_of(table: str, batch_id: int, change: Change) -> dict[str, Any]:
    """The parameters of UpdateItem, and of an Update in a transaction, for a change of a batch."""
    sets = {name: value for place in change.sets.items() for name, value in _changed(batch_id, *place)}
    adds = {**change.adds, **dict(zip(SUMS, change.sums, strict=False))}
    return update_of(table, batch_key(batch_id), sets, change.when, adds=adds)


def _changed(batch_id: int, name: str, value: Any) -> Iterable[tuple[str, Value | None]]:
    """The attributes of a field, with their new values; None for one that goes."""
    match name:
        case "state":
            return [(name, value), (names.STATE_SHARD, sharded(value, batch_id))]
        case "attention":
            return [(name, value and sharded(value, batch_id))]
        case "totals":
            return sums_of(value).items()
        case _:
            return [(name, _in_row(name, value))]
