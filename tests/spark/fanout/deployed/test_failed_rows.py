"""Failed rows of a fan-out go out again: each failure once, whoever redrives it and whatever dies."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fanin.domain.batch import OpenBatch, State
from fanin.domain.failures import KeptMessage
from fanin.domain.marks import Failure
from fanin.errors import InvalidRequest
from fanin.spark.fanout import driver
from fanin.spark.fanout.driver import fan_out
from fanin.spark.fanout.failed_rows import FailedRows
from fanin.spark.fanout.folder import SentMessages
from fanin.spark.fanout.summary import FannedOut
from fanin.spark.inputs.formats import Dataset
from fanin.spark.jobs.fan_out import JOB
from fanin.spark.runtime.files import Folder
from fanin.spark.runtime.service import Service
from tests.spark.consuming import consumers, new_queue, waiting

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "spark" / "outcomes.md"
ROWS = 80
BAD = (3, 64, 65, 79)


def body(number: int) -> str:
    return json.dumps({"id": number}, separators=(",", ":"))


def fanned(
    spark: SparkSession, service: Service, folder: Path, *, kept: str = "", pending: tuple[int, ...] = ()
) -> int:
    """Fan ``ROWS`` rows out from ``folder``/first, let ``BAD`` fail, and let the batch end.

    Args:
        kept: the queue to which a redrive sends the messages of the failures; by default they are not kept.
        pending: rows that are never acknowledged, so that the batch has to be cancelled.

    Returns:
        The batch.
    """
    spark.range(0, ROWS, 1, 3).write.parquet(str(folder / "rows"))
    queue, ledger = new_queue(), service.ledger()
    told = fan_out(
        Dataset(folder / "rows"),
        queue=queue,
        staging=folder / "first",
        user_key="orders",
        metadata={"run": "7"},
        totals=["rows"],
    )
    batch_id = told.batch_id
    assert batch_id is not None
    items: dict[int, str] = {}
    client = service.tracker().sqs
    while len(items) < ROWS:
        received = client.receive_message(
            QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        for message in received.get("Messages", []):
            (item,) = (one["StringValue"] for one in message["MessageAttributes"].values())
            items[json.loads(message["Body"])["id"]] = item
    ledger.mark(
        [
            Failure(items[n], "no such customer", KeptMessage(body(n)) if kept else None, source=kept)
            for n in BAD
        ]
    ).whole()
    ledger.mark([item for number, item in items.items() if number not in {*BAD, *pending}]).whole()
    if pending:
        ledger.cancel(batch_id)
    assert ledger.status(batch_id).batch.state.terminal
    return batch_id


def again(folder: Path, batch_id: int, queue: str, name: str = "again", **more: Any) -> FannedOut:
    return fan_out(FailedRows(batch_id, folder / "first", **more), queue=queue, staging=folder / name)


def test_the_job_sends_each_failed_row_once_as_a_batch_that_retries_the_first(
    spark, service, tmp_path, capsys
):
    # Given a batch of which some items failed, whose messages nobody kept
    first, queue = fanned(spark, service, tmp_path), new_queue()
    command = ("--failed-from", tmp_path / "first", "--retry-of", first, "--queue", queue)

    def job(name: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = JOB.main([str(word) for word in (*command, "--staging", tmp_path / name)])
        return code, json.loads(capsys.readouterr().out.splitlines()[-1])

    # When the job sends them again, and consumers work
    with consumers(service.tracker(), queue) as handled:
        code, told = job("again")
    # Then each failed row was sent once, in a batch that is like the first
    assert (code, told["rows"], told["sent"], told["already"], told["retry_of"]) == (0, 4, 4, 0, first)
    assert handled.times == {body(number): 1 for number in BAD}
    row = service.ledger().status(told["batch_id"]).batch
    assert (row.state, row.retry_of, row.user_key, row.metadata["run"], tuple(row.totals)) == (
        State.COMPLETE,
        first,
        "orders",
        "7",
        ("rows",),
    )
    # And the failures of the first batch read as redriven
    assert all(failure.redriven for failure in service.tracker().iter_failures(first))
    # When it runs again, then it sends nothing and says the same; from another folder nothing is left
    assert {**job("again")[1], "seconds": 0} == {**told, "state": "complete", "seconds": 0}
    code, told = job("third")
    assert (code, told["batch_id"], told["rows"], told["already"]) == (0, None, 0, 4)
    assert waiting(queue) == 0


def test_rows_and_kept_messages_are_never_both_sent(spark, service, tmp_path):
    # Given failures with their messages, of which a redrive has sent one
    queue, tracker = new_queue(), service.tracker()
    tracker.sqs.tag_queue(QueueUrl=queue, Tags={"fanin:tracked": "work"})
    first = fanned(spark, service, tmp_path, kept=queue)
    one = next(iter(tracker.iter_failures(first))).ordinal
    before = tracker.redrive(first, ranges=[(one, one + 1)])
    assert before.items == 1
    # When the rows are sent, and then all messages are to be redriven
    told = again(tmp_path, first, queue)
    after = tracker.redrive(first)
    # Then each leaves out what another has sent
    assert (told.rows, told.sent, told.already) == (3, 3, 1)
    assert (after.items, after.already) == (0, 4)
    assert waiting(queue) == 4


def test_a_driver_that_dies_again_and_again_is_continued(spark, service, tmp_path, monkeypatch):
    # Given drivers that die at every step
    first, queue = fanned(spark, service, tmp_path), new_queue()
    ledger = service.ledger()

    def die(*_arguments: object, **_more: object) -> Any:
        raise ConnectionError("the driver is gone")

    def lose_the_note(files: Folder, name: str, *arguments: Any, **more: Any) -> Any:
        return die() if files.path == f"{tmp_path}/again" else write(files, name, *arguments, **more)

    write = Folder.write
    for where, step, dies in (
        (Folder, "write", lose_the_note),  # the rows are chosen and taken, and not yet staged
        (driver, "open_batch", die),  # they are staged
        (SentMessages, "begin", die),  # they are items
        (driver, "send", die),  # they may have been sent
        (SentMessages, "finish", die),  # they are
        (driver, "summarize", die),  # the batch is closed
    ):
        with monkeypatch.context() as dying:
            dying.setattr(where, step, dies)
            with pytest.raises(ConnectionError):
                again(tmp_path, first, queue)
        # When another redrive runs meanwhile, then it sends nothing
        if step == "open_batch":
            assert again(tmp_path, first, queue, "other").already == len(BAD)
        # When their batch is ended before any is sent, then the next driver opens another
        if step == "begin":
            (ended,) = (batch for batch in ledger.list(State.OPEN).batches if batch.retry_of == first)
            ledger.cancel(ended.batch_id)
    # When the same one runs again, then all have gone out once, as items of one batch, though the driver that
    # had sent them did not come to say so: its tasks have noted it
    with consumers(service.tracker(), queue) as handled:
        told = again(tmp_path, first, queue)
    assert (told.rows, told.sent) == (4, 4)
    assert handled.times == {body(number): 1 for number in BAD}
    assert all(len(bodies) == 1 for bodies in handled.bodies.values())
    assert len(handled.bodies) == len(BAD)
    assert ledger.status(told.batch_id).batch.state is State.COMPLETE


def test_the_page_says_which_rows_failed_and_pending_ones_go_out_if_they_are_asked_for(
    spark, service, tmp_path, capsys
):
    # Given a batch that was ended when some items had failed, and some were pending
    first, queue = fanned(spark, service, tmp_path, pending=(0, 70)), new_queue()
    # When the example of the page is run on its folder
    example = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    capsys.readouterr()
    exec(example.replace("/data/runs/2026-11-21", f"{tmp_path}/first"), {})
    # Then it counts the rows by their outcome, and shows those that failed, each with its reason
    printed = [tuple(re.findall(r"[^|]+", line)) for line in capsys.readouterr().out.split("\n")]
    told = {tuple(cell.strip() for cell in cells) for cells in printed if len(cells) == 2}
    assert told == {
        ("outcome", "count"),
        ("done", str(ROWS - len(BAD) - 2)),
        ("failed", str(len(BAD))),
        ("pending", "2"),
        ("body", "why"),
        *((body(number), "no such customer") for number in BAD),
    }
    # And failed rows are sent again, and pending ones if they are asked for
    failed = again(tmp_path, first, queue)
    both = again(tmp_path, first, queue, "both", pending=True)

    assert (failed.rows, both.rows, both.already) == (4, 2, 4)
    with consumers(service.tracker(), queue) as handled:
        pass
    assert handled.times == {body(number): 1 for number in (*BAD, 0, 70)}
    # And rows that failed again are sent again from the folder of the second fan-out
    assert failed.batch_id is not None
    rows = FailedRows(failed.batch_id, tmp_path / "again")
    assert fan_out(rows, queue=queue, staging=tmp_path / "third").rows == 0


def test_a_batch_that_has_not_ended_or_came_from_elsewhere_is_refused(spark, service, tmp_path):
    # Given a fan-out that goes on, and a batch that came from elsewhere
    spark.range(3).write.parquet(str(tmp_path / "rows"))
    queue = new_queue()
    running = fan_out(Dataset(tmp_path / "rows"), queue=queue, staging=tmp_path / "first").batch_id
    assert running is not None
    other = service.ledger().open(OpenBatch())
    service.ledger().cancel(other.batch_id)

    for batch_id, folder, why in (
        (running, "first", "its failed rows can be sent again when it has ended"),
        (other.batch_id, "first", "holds the staging of another batch"),
        (other.batch_id, "rows", "holds no finished staging"),
    ):
        rows = FailedRows(batch_id, tmp_path / folder)
        with pytest.raises(InvalidRequest, match=why):
            fan_out(rows, queue=queue, staging=tmp_path / "again")
    assert not (tmp_path / "again").exists()
