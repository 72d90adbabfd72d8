"""Random batches, worked on by the real ledger, and marks that get lost."""

from collections.abc import Sequence
from random import Random
from typing import Any

from fanin.adapters.dynamodb.rows import SUMS
from fanin.domain.marks import Done, Failure
from tests.spark.tables import FULL, Tables

SIZES = (1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 9000, 64**3, 64**3 + 1)
DEEP = (*SIZES, 64**4 + 5)
"""With trees that take the ledger some seconds each to say what is missing."""
_TRIES = 1000
_RANGE = 9_000
_NONE = {"N": "0"}
ENDS = ("open", "close first", "close last", "cancel")


def _script(random: Random, sizes: Sequence[int]) -> dict[str, Any]:
    """What happens to one batch; places are fractions, so that they fit any size."""

    def places(most: int) -> list[int]:
        return [random.randrange(10**6) for _ in range(random.randint(0, most))]

    return {
        "sizes": random.choices(sizes, k=random.randint(1, 2)),
        "singles": places(20),
        "words": places(3),
        "ranges": [(place, random.randrange(10**6)) for place in places(4)],
        "edges": random.random() < 0.5,
        "failures": places(2),
        "end": random.choice(ENDS),
    }


def played(tables: Tables, random: Random, sizes: Sequence[int] = SIZES) -> list[int]:
    """Sixty batches, each worked on as a script says."""
    return [_play(tables, _script(random, sizes)) for _ in range(60)]


def lost(tables: Tables, random: Random, batches: list[int]) -> set[str]:
    """Undo the marks above some finished leaves of these batches; says which leaves."""
    ours = {str(batch_id) for batch_id in batches}
    leaves = (key for key, row in tables.words.items() if row["word"]["N"] == "0" and "/0/" in key)
    whole = sorted(key for key in leaves if key.partition("/")[0] in ours)
    random.shuffle(whole)
    return {key for key in whole[:_TRIES] if _lose(tables, key)}


def _play(tables: Tables, script: dict[str, Any]) -> int:
    """Work on a batch as the script says; the ledger settles and completes it as it goes."""
    # With totals, a call marks so many items of a range at most
    totals = ("rows", "cents") if max(script["sizes"]) <= _RANGE and len(script["singles"]) % 2 else ()
    batch, group = tables.batch(script["sizes"][0], closed=False, totals=totals)
    groups = [group, *(tables.ledger.add(batch.batch_id, more) for more in script["sizes"][1:])]
    if script["end"] == "close first":
        tables.ledger.close(batch.batch_id)
    for which, place in enumerate(script["singles"]):
        group = groups[which % len(groups)]
        item = group[place % len(group)]
        _ack(tables, [item], {"cents": -place, "rows": which} if totals else {})
    for which, place in enumerate(script["words"]):  # by their items, or only a bit above them would tell
        group = groups[which % len(groups)]
        first = place % len(group) // 64 * 64
        _ack(tables, list(group[first : first + 64]), {"rows": 3} if totals else {})
    for which, (one, other) in enumerate(script["ranges"]):
        group = groups[which % len(groups)]
        low, high = sorted((one * len(group) // 10**6, other * len(group) // 10**6))
        tables.ack(group, (low, min(high + 1, len(group))))
    if script["edges"]:  # all but a few, so that words of all levels become done
        for group in groups:
            tables.ack(group, (0, len(group) // 64 * 64 or 1), (len(group) - 1, len(group)))
    for place in script["failures"]:
        brings = {"cents": place} if totals else {}
        tables.ledger.mark([Failure(groups[-1][place % len(groups[-1])], "broken", totals=brings)]).whole()
    if script["end"] == "close last":
        tables.ledger.close(batch.batch_id)
    if script["end"] == "cancel":
        tables.ledger.cancel(batch.batch_id)
    return batch.batch_id


def _ack(tables: Tables, items: list[str], values: dict[str, int]) -> None:
    if values:
        tables.ledger.mark([Done(item, values) for item in items]).whole()
    else:
        tables.ledger.mark(items).whole()


def ranges_of(tables: Tables, batch_id: int) -> list[tuple[int, int]]:
    """All that the ledger says is missing, its pages joined."""
    found: list[tuple[int, int]] = []
    cursor = None
    while True:
        page = tables.ledger.missing(batch_id, cursor=cursor, limit=1000)
        for part in page.ranges:
            if found and found[-1][1] == part.start:
                found[-1] = found[-1][0], part.stop
            else:
                found.append((part.start, part.stop))
        cursor = page.cursor
        if cursor is None:
            return found


def _lose(tables: Tables, leaf: str) -> bool:
    """Undo the mark above a leaf that is 0, unless there is no mark or that would change what is missing."""
    batch, _, number = leaf.split("/")
    above = f"{batch}/1/{int(number) // 64}"
    if above not in tables.words:
        return False
    row = tables.words[above]
    word, bit = int(row["word"]["N"]), 1 << int(number) % 64
    if word & bit or word | bit == FULL or _shadowed(tables, batch, int(number) // 64, 1):
        return False
    others = [cleared for cleared in row["done"]["NS"] if int(cleared) != int(number) % 64]
    below = tables.words[leaf]
    given = {name: int(below[name]["N"]) for name in SUMS if name in below}
    given |= {"carried": 1, "failures": int(below.get("failed", _NONE)["N"]).bit_count()}
    lost = {name: {"N": str(int(row[name]["N"]) - number)} for name, number in given.items() if name in row}
    tables.words[above] = {**row, **lost, "word": {"N": str(word | bit)}, "done": {"NS": others}}
    return True


def _shadowed(tables: Tables, batch: str, number: int, level: int) -> bool:
    """Whether a bit above the word is clear, or it was done itself, so that its loss shows elsewhere."""
    if tables.words[f"{batch}/{level}/{number}"]["word"]["N"] == "0":
        return True
    closed = tables.memory.batches._rows[int(batch)]
    if closed.closed_at is not None and number == tables.memory.tree.last(level, closed.items):
        return True
    for above in range(level + 1, 7):
        row = tables.words.get(f"{batch}/{above}/{number >> 6 * (above - level)}")
        if row and not int(row["word"]["N"]) >> (number >> 6 * (above - level - 1) & 63) & 1:
            return True
    return False
