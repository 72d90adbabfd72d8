"""docs/how-to/restore.md, rehearsed: rows are lost, and come back from a point-in-time recovery."""

import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fanin import Tracker, names
from fanin.local import environment

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "restore.md").read_text()
TABLES = (names.ENV_BATCHES_TABLE, names.ENV_WORDS_TABLE, names.ENV_PARTS_TABLE, names.ENV_DIRECTORY_TABLE)


class Rehearsal:
    """The tables of the stack, copies of them as they were, and the commands of the page."""

    def __init__(self, stack: Any) -> None:
        self.dynamodb = stack.client("dynamodb")
        self.suffix = f".{uuid.uuid4().hex[:8]}"
        self._variables = environment(stack, os.environ)
        self.tables = [self._variables[name] for name in TABLES]

    def restore_beside(self, batch: int) -> None:
        """Put copies of the tables beside them, as a recovery does, with the rows of one batch.

        The rows of others change while this test runs.
        """
        for table in self.tables:
            like = self.dynamodb.describe_table(TableName=table)["Table"]
            given = {name: like[name] for name in ("KeySchema", "AttributeDefinitions")}
            used = {part["AttributeName"] for part in given["KeySchema"]}
            given["AttributeDefinitions"] = [
                one for one in given["AttributeDefinitions"] if one["AttributeName"] in used
            ]
            self.dynamodb.create_table(TableName=table + self.suffix, BillingMode="PAY_PER_REQUEST", **given)
        for table, key in self.rows(batch):
            row = self.dynamodb.get_item(TableName=table, Key=key)["Item"]
            self.dynamodb.put_item(TableName=table + self.suffix, Item=row)

    def run(self, begins: str, batch: int) -> str:
        """Run a command of the page, which names its suffix and a batch."""
        (line,) = re.findall(rf"^{re.escape(begins)}$", PAGE, re.MULTILINE)
        words = [
            word.replace(".restored", self.suffix).replace("$BATCH", str(batch)) for word in shlex.split(line)
        ]
        done = subprocess.run(
            [Path(sys.executable).with_name(words[0]), *words[1:]],
            env={**os.environ, **self._variables},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def rows(self, batch: int) -> list[tuple[str, dict[str, Any]]]:
        """Table and key of each row of a batch."""
        return [
            (table, {name: row[name] for name in key})
            for table, key in zip(
                self.tables[:3], (["batch_id"], ["word_id"], ["batch_id", "part"]), strict=True
            )
            for row in self.dynamodb.get_paginator("scan").paginate(TableName=table).search("Items[]")
            if (row[key[0]].get("N") or row[key[0]]["S"].partition("/")[0]) == str(batch)
        ]

    def lose(self, batch: int) -> None:
        for table, key in self.rows(batch):
            self.dynamodb.delete_item(TableName=table, Key=key)

    def close(self) -> None:
        for table in self.tables:
            self.dynamodb.delete_table(TableName=table + self.suffix)


@pytest.fixture
def batch(direct: Tracker) -> Any:
    """A closed batch of 300 items, half of them done, one of them failed."""
    with direct.batch(user_key="lost") as made:
        group = made.add(300)
    direct.ack(group[0:150])
    direct.fail(group[150], "no such customer")
    return made, group


@pytest.fixture
def rehearsal(stack: Any, batch: Any, local_environment: None) -> Iterator[Rehearsal]:
    made = Rehearsal(stack)
    made.restore_beside(batch[0].id)
    yield made
    made.close()


def test_a_batch_whose_rows_were_deleted_comes_back_and_completes(batch, rehearsal, direct, subscriber):
    # Given copies of all tables, and a batch that is then lost with all of its rows
    made, group = batch
    before = rehearsal.rows(made.id)
    rehearsal.lose(made.id)
    assert rehearsal.rows(made.id) == []
    # When the page is followed, trying first, and copying twice
    found, copied = _sums(rehearsal.run("fanin restore --dry-run .restored", made.id))
    assert (found, copied) == (len(before), 0)
    copied = _sums(rehearsal.run("fanin restore .restored", made.id))
    n = len(before)  # a function may have written a row once more after the loss
    assert copied in [(found, n - 1), (found, n)]
    assert _sums(rehearsal.run("fanin restore .restored", made.id)) == (found, 0)
    # Then everything is as it was: the marks, and why an item failed
    assert sorted(map(str, rehearsal.rows(made.id))) == sorted(map(str, before))
    assert "149" in rehearsal.run('fanin missing "$BATCH"', made.id)
    assert direct.status(made.id, exact=True).done_min == 151
    assert direct.failures(made.id).failures[0].reason == "no such customer"
    rehearsal.run('fanin verify "$BATCH" --repair', made.id)
    # And the batch goes on to its end
    direct.ack(group[151:300])
    assert subscriber.only_event_of(made.id)["detail-type"] == "Batch Completed"


def test_a_batch_that_was_removed_by_mistake_is_put_back_as_it_was(batch, rehearsal, direct):
    # Given a batch that was cancelled and removed after the copies were made
    made, group = batch
    direct.ack(group[151:160])
    direct.cancel(made.id)
    direct.remove(made.id)
    # When its rows are replaced
    rehearsal.run('fanin restore --batch "$BATCH" --replace .restored', made.id)
    # Then it is live again, and what was acknowledged since is pending again, as the page says
    (row,) = [key for table, key in rehearsal.rows(made.id) if table == rehearsal.tables[0]]
    found = rehearsal.dynamodb.get_item(TableName=rehearsal.tables[0], Key=row)["Item"]
    assert found["state"] == {"S": "closed"}
    assert "149" in rehearsal.run('fanin missing "$BATCH"', made.id)


def _sums(text: str) -> tuple[int, int]:
    """How many rows of all tables were found and copied."""
    lines = [line.split("\t") for line in text.splitlines()]
    return sum(int(one) for _, one, _ in lines[1:]), sum(int(one) for _, _, one in lines[1:])
