"""Lets the emulator read the rows that a Query asks for instead of the whole partition.

The emulator sorts all rows of a partition, and evaluates the key condition for each of them, in every Query.
With 300,000 rows a page takes more than ten seconds. Here the sort keys of a partition are kept in order, so
that a Query finds the rows of its page by bisection. The emulator still evaluates what it is handed, so its
answers stay the same. A Query that is not understood here is handed the whole partition, as before.

``launcher.py`` loads this file by its path, in the emulator's own Python; so it imports nothing of fanin.
"""

import importlib
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

PATCHED = ("_query", "_set_item", "_remove_item")
USED = (
    "_DDB_PAGE_SIZE_BYTES",
    "_INDEX_MEMBERS",
    "_extract_key_val",
    "_get_attr_type",
    "_index_members",
    "_item_size_bytes",
    "_normalize_table_name",
    "_tables",
    "_tokenize",
)
ORDER = "/sort keys"
"""Where the keys stand among the members of indexes; the name of an index has no slash.

The emulator forgets the members of a table when all its rows are replaced, and does not save or copy them.
That is right for the keys, too.
"""
IGNORED = {"LPAREN", "RPAREN", "EOF"}
KEYWORDS = {"AND", "OR", "NOT", "BETWEEN"}
BEGINS_WITH = "begins_with N , V"
BETWEEN = "N BETWEEN V AND V"
ORDERED = ("=", "<", "<=", ">", ">=")
SORT_CONDITIONS = (BEGINS_WITH, BETWEEN, *(f"N {operator} V" for operator in ORDERED))
"""The conditions on a sort key that are understood: N is a name, V a value."""
CONDITIONS = {"N = V": "", **{f"N = V AND {form}": form for form in SORT_CONDITIONS}}
"""Key conditions without their parentheses, and what they say about the sort key."""


def tune(require: Callable[[Any, str], None]) -> None:
    """Patch the emulator.

    Args:
        require: ends the process if a module lacks an attribute.
    """
    dynamodb = importlib.import_module("ministack.services.dynamodb")
    for attribute in (*PATCHED, *USED):
        require(dynamodb, attribute)
    tuned = _Tuned(dynamodb)
    for attribute in PATCHED:
        setattr(dynamodb, attribute, getattr(tuned, attribute.removeprefix("_")))


class _Condition(NamedTuple):
    """The key condition of a Query: one partition, and perhaps a condition on the sort key."""

    partition: str
    form: str
    operands: Sequence[str]


class _Tuned:
    """Replaces functions of the emulator's DynamoDB.

    Args:
        dynamodb: the emulator's module. Its requests run one after the other, but rows that are past their
            time to live are removed by a thread.
    """

    def __init__(self, dynamodb: Any) -> None:
        self._module = dynamodb
        self._query, self._set, self._remove = (getattr(dynamodb, name) for name in PATCHED)
        self._writing = threading.RLock()

    def set_item(self, table: Any, partition: Any, key: Any, item: Any) -> Any:
        with self._writing:
            old = self._set(table, partition, key, item)
            keys = self._known(table, partition)
            if old is None and keys is not None:
                insort(keys, key)
            return old

    def remove_item(self, table: Any, partition: Any, key: Any) -> Any:
        with self._writing:
            old = self._remove(table, partition, key)
            keys = self._known(table, partition)
            if old is not None and keys is not None:
                del keys[bisect_left(keys, key)]
            return old

    def _known(self, table: Any, partition: Any) -> list[str] | None:
        keys: list[str] | None = table.get(self._module._INDEX_MEMBERS, {}).get(ORDER, {}).get(partition)
        return keys

    def query(self, data: Any) -> Any:
        with self._writing:
            narrowed = self._narrowed(data)
        if narrowed is None:
            return self._query(data)
        # The same code, which finds another table under the name. Names of the module are copied at each
        # call, since they may have changed.
        scope = {**vars(self._module), "_tables": narrowed}
        return FunctionType(self._query.__code__, scope, "_query")(data)

    def _narrowed(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """The table of a Query, by its name, with the rows of the page only; None if that is not known."""
        if data.get("IndexName") or data.get("KeyConditions"):
            return None
        name = self._module._normalize_table_name(data.get("TableName"))
        table: dict[str, Any] | None = self._module._tables.get(name) if isinstance(name, str) else None
        if not table or not self._sorts_text(table):
            return None
        condition = self._condition(table, data)
        if condition is None or not table["items"].get(condition.partition):
            return None
        after = self._after(table, condition.partition, data.get("ExclusiveStartKey"))
        if after is None:
            return None
        rows = self._page(table, condition, after, data)
        return {name: {**table, "items": {condition.partition: rows}}}

    def _sorts_text(self, table: Any) -> bool:
        """Whether its sort key is text; the emulator orders numbers and bytes otherwise."""
        return table["sk_name"] is not None and self._module._get_attr_type(table, table["sk_name"]) == "S"

    def _condition(self, table: Any, data: Any) -> _Condition | None:
        expression, values = data.get("KeyConditionExpression"), data.get("ExpressionAttributeValues")
        aliases = data.get("ExpressionAttributeNames") or {}
        if not (isinstance(expression, str) and isinstance(values, dict) and isinstance(aliases, dict)):
            return None
        tokens = [token for token in self._module._tokenize(expression) if token[0] not in IGNORED]
        words = list(map(_word, tokens))
        form = CONDITIONS.get(" ".join(words))
        texts = [text for _, text in tokens]
        names = [aliases.get(text, text) for text, word in zip(texts, words, strict=True) if word == "N"]
        operands: list[Any] = [
            values.get(text) for text, word in zip(texts, words, strict=True) if word == "V"
        ]
        if form is None or names != [table["pk_name"], table["sk_name"]][: len(names)]:
            return None
        partition = self._module._extract_key_val(operands[0])
        if not isinstance(partition, str) or not all(map(_is_plain_text, operands[1:])):
            return None
        return _Condition(partition, form, [operand["S"] for operand in operands[1:]])

    def _after(self, table: Any, partition: str, start: Any) -> str | None:
        """The sort key that a Query starts behind, or ""; None if it starts with another kind of key."""
        if not start:
            return ""
        if not isinstance(start, dict) or start.keys() != {table["pk_name"], table["sk_name"]}:
            return None
        behind = start[table["sk_name"]]
        if self._module._extract_key_val(start[table["pk_name"]]) != partition:
            return None
        return behind["S"] if _is_plain_text(behind) else None

    def _page(self, table: Any, condition: _Condition, after: str, data: Any) -> dict[str, Any]:
        """The rows that the page of a Query has; a single other row if it has none.

        That row lets the emulator find what is wrong with a condition, which it looks for row by row.
        """
        partition = table["items"][condition.partition]
        keys = self._keys(table, condition.partition)
        first, last = _range(keys, condition.form, condition.operands)
        backwards = not data.get("ScanIndexForward", True)
        if after and backwards:
            last = min(last, bisect_left(keys, after))
        elif after:
            first = max(first, bisect_right(keys, after))
        limit = data.get("Limit")
        most = limit if isinstance(limit, int) and limit > 0 else len(keys)
        rows: dict[str, Any] = {}
        size = 0
        for at in range(last - 1, first - 1, -1) if backwards else range(first, last):
            row = rows[keys[at]] = partition[keys[at]]
            size += self._module._item_size_bytes(row)
            if len(rows) >= most or size >= self._module._DDB_PAGE_SIZE_BYTES:
                break
        return rows or {keys[0]: partition[keys[0]]}

    def _keys(self, table: Any, partition: str) -> list[str]:
        """The sort keys of a partition in order, kept from now on."""
        orders = self._module._index_members(table).setdefault(ORDER, {})
        if partition not in orders:
            orders[partition] = sorted(table["items"][partition])
        keys: list[str] = orders[partition]
        return keys


def _word(token: tuple[str, str]) -> str:
    """A token of a key condition as it is written in ``SORT_CONDITIONS``."""
    kind, text = token
    if kind == "VALUE_REF":
        return "V"
    if kind == "NAME_REF":
        return "N"
    if kind != "IDENT":
        return text
    if text.lower() == "begins_with":
        return "begins_with"
    return text.upper() if text.upper() in KEYWORDS else "N"


def _is_plain_text(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() == {"S"} and isinstance(value["S"], str)


def _range(keys: list[str], form: str, operands: Sequence[str]) -> tuple[int, int]:
    """From which place in the order to before which one the keys fulfil a condition."""
    if form == "":
        return 0, len(keys)
    low, high = operands[0], operands[-1]
    if form == BEGINS_WITH:
        first = bisect_left(keys, low)
        return first, bisect_left(keys, True, first, key=lambda key: not key.startswith(low))
    if form == BETWEEN:
        return bisect_left(keys, low), bisect_right(keys, high)
    return {
        "N = V": (bisect_left(keys, low), bisect_right(keys, low)),
        "N < V": (0, bisect_left(keys, low)),
        "N <= V": (0, bisect_right(keys, low)),
        "N > V": (bisect_right(keys, low), len(keys)),
        "N >= V": (bisect_left(keys, low), len(keys)),
    }[form]
