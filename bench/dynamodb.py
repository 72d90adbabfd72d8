"""Cross-check on DynamoDB's interface: the real adapters on an emulator, with a meter on the client."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import boto3
from botocore.config import Config

from bench.figures import Figure
from bench.world import span
from bench.writers import WRITERS, contended, in_threads, share, writer
from fanin import names
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Connection
from fanin.adapters.dynamodb.metering import Meter
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.adapters.dynamodb.rows import word_id
from fanin.adapters.dynamodb.words import DynamoWords
from fanin.adapters.memory import FixedClock, Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports import Ports
from fanin.app.ports.words import Clear, ItemClaim, Tally, WordKey
from fanin.domain.batch import OpenBatch, State
from fanin.domain.ids import MAX_BATCH_ID, MAX_ITEMS
from fanin.domain.totals import MAX_TOTALS, MAX_VALUE, Sums
from fanin.domain.tree import Tree, positions
from fanin.local import emulator

HOME = (
    Path(__file__).resolve().parent.parent / ".fanin" / "emulator"
)  # the installation that ``fanin local`` uses
ITEMS = 2_048
BATCHES, WORDS, PARTS = "batches", "words", "parts"
KEYS = {
    BATCHES: {names.BATCH_ID: "N"},
    WORDS: {names.WORD_ID: "S"},
    PARTS: {names.BATCH_ID: "N", names.PART: "S"},
}


def emulated() -> list[Figure]:
    """Writers in threads on real conditional expressions, and the size of the largest row of a word."""
    with _emulator() as client:
        for table, key in KEYS.items():
            _create(client, table, key)
        connection = Connection(lambda: client, threads=WRITERS)
        ports = replace(
            Memory(clock=FixedClock()).ports(),  # on a slow machine a real one counts more notes of activity
            batches=DynamoBatches(BATCHES, PARTS, connection),
            words=DynamoWords(WORDS, connection),
            parts=DynamoParts(PARTS, connection),
        )
        return [
            *_shared_words(ports, Meter(client)),
            _largest_word(ports, client, ()),
            _largest_word(ports, client, (-MAX_VALUE,) * MAX_TOTALS),
        ]


def _shared_words(ports: Ports, meter: Meter) -> list[Figure]:
    producer = LedgerService(ports)
    batch = producer.open(OpenBatch())
    producer.add(batch.batch_id, ITEMS)
    producer.close(batch.batch_id)
    ledgers = [LedgerService(ports) for _ in range(WRITERS)]
    for ledger in ledgers:
        ledger.status(batch.batch_id)  # warm up: each process knows the batch afterwards
    meter.reset()
    items = span(batch, 0, ITEMS)
    in_threads(writer(ledger, share(items, number)) for number, ledger in enumerate(ledgers))
    writes, reads, refused = meter.writes.total(), meter.reads.total(), meter.refused.total()
    if producer.status(batch.batch_id).batch.state is not State.COMPLETE:
        raise AssertionError("all items are acknowledged, but the batch is not complete")
    return contended("DynamoDB adapters", writes, reads, refused, ITEMS)


def _largest_word(ports: Ports, client: Any, sums: Sums) -> Figure:
    """A last leaf of the largest batch with every item leased and failed, before and after its last bit.

    Args:
        ports: the stores.
        client: of DynamoDB.
        sums: what each item brings to the totals of the batch.
    """
    tree = Tree()
    key = WordKey(MAX_BATCH_ID, 0, tree.last(0, MAX_ITEMS) - len(sums))
    ports.words.claim([ItemClaim(key, bit, now=2**32, until=2**33, expires_at=2**35) for bit in range(64)])
    sizes = []
    for mask in (tree.full >> 1, tree.bits[-1]):
        brought = {at: Tally(sums=sums) for at in positions(mask)} if sums else {}
        ports.words.clear([Clear(key, mask, expires_at=2**35, failed=True, carried=brought)])
        row = client.get_item(TableName=WORDS, Key={names.WORD_ID: {"S": word_id(key)}}, ConsistentRead=True)
        sizes.append(_size(row["Item"]))
    note = "DynamoDB's rules; 64 items leased and failed, longest key"
    what = f" with {len(sums)} totals" if sums else ""
    return Figure(f"bytes of the row of a full word{what}", max(sizes), at_most=1_023, note=note)


def _size(item: dict[str, Any]) -> int:
    """Size of an item in bytes, by "Item sizes and formats" of the DynamoDB Developer Guide.

    The guide does not say the overhead of a set; the overhead of a list is used, which is larger.
    """
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(typed: dict[str, Any]) -> int:
    ((kind, value),) = typed.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return -(-len(value) // 2) + 1
        case "NS":
            return 3 + sum(1 + _value_size({"N": number}) for number in value)
    raise AssertionError(f"the row of a word has an attribute of type {kind}, whose size is unknown here")


@contextmanager
def _emulator() -> Iterator[Any]:
    """Start an emulator, yield a client for it, and stop it."""
    python = emulator.install(HOME, lambda message: print(message, file=sys.stderr))
    with TemporaryDirectory() as folder:
        try:
            yield boto3.client(
                "dynamodb",
                endpoint_url=emulator.start(Path(folder), python).endpoint_url,
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",  # noqa: S106
                config=Config(
                    max_pool_connections=WRITERS, read_timeout=10, retries={"total_max_attempts": 1}
                ),
            )
        finally:
            emulator.stop(Path(folder))


def _create(client: Any, table: str, key: dict[str, str]) -> None:
    client.create_table(
        TableName=table,
        KeySchema=[
            {"AttributeName": name, "KeyType": kind}
            for name, kind in zip(key, ("HASH", "RANGE"), strict=False)
        ],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in key.items()],
        BillingMode="PAY_PER_REQUEST",
    )
