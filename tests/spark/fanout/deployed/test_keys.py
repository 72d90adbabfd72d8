"""Items by their own keys, their results, and the group of their messages: sent by Spark, and read by it."""

import json
from typing import Any

import boto3
import pytest

from fanin.domain.batch import Batch, CloseWhen, State
from fanin.domain.ids import ItemKey
from fanin.domain.marks import Done, Failure
from fanin.errors import InvalidRequest
from fanin.names import ITEM_ATTRIBUTE
from fanin.spark.fanout.driver import fan_out
from fanin.spark.fanout.failed_rows import FailedRows, sent_rows
from fanin.spark.outcome import outcomes
from tests.spark.consuming import new_queue, waiting

ROWS = [(f"https://a/{n}", n) for n in range(250)]
TWICE = [("https://a/7", 1_007), ("https://a/7", 1_008)]
NO_KEY = [(None, 1), ("", 2), ("é" * 257, 3)]


def received(queue: str) -> dict[str, tuple[str, str]]:
    """Take all messages of a queue: body → item and group."""
    sqs: Any = boto3.client("sqs")
    found: dict[str, tuple[str, str]] = {}
    while some := sqs.receive_message(
        QueueUrl=queue,
        MaxNumberOfMessages=10,
        MessageAttributeNames=["All"],
        MessageSystemAttributeNames=["MessageGroupId"],
    ).get("Messages"):
        for one in some:
            item = one["MessageAttributes"][ITEM_ATTRIBUTE]["StringValue"]
            assert one["Body"] not in found
            found[one["Body"]] = item, one.get("Attributes", {}).get("MessageGroupId", "")
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=one["ReceiptHandle"])
    return found


def test_one_key_is_one_item_whoever_adds_it(spark, service, tmp_path):
    # Given pages of which one is named three times and three have no key that can be one; and a batch to
    # which others have added a page with another message, and one that is done
    pages = spark.createDataFrame([*ROWS, *TWICE, *NO_KEY], "url string, depth int").repartition(4)
    tracker, queue = service.tracker(), new_queue()

    def opened(batch: Batch) -> None:
        _, seen = tracker.add(
            batch.batch_id, keys=[ItemKey("https://a/1", "another"), ItemKey("https://a/2", "")]
        )
        tracker.ack(Done(seen.item, result="seen before"))

    def run() -> Any:
        return fan_out(
            pages,
            queue=queue,
            staging=tmp_path / "staging",
            keys="url",
            fair=True,
            close=CloseWhen.DRAINED,
            opened=opened if not (tmp_path / "staging").exists() else lambda _: None,
            results=True,
        )

    told = run()
    # Then each other key is an item of one message, in the batch's group; and every row is accounted for
    sent = received(queue)
    assert told.rejects == {"duplicate": 2, "null": 1, "malformed": 1, "too_large": 1, "conflicting": 1}
    assert told.accounted == {"in": 255, "sent": 249, "rejected": 6}
    found = {json.loads(body)["url"] for body in sent}
    assert found == {url for url, _ in ROWS} - {"https://a/1", "https://a/2"}
    assert len(sent) == 248
    assert {group for _, group in sent.values()} == {str(told.batch_id)}
    batch = tracker.status(told.batch_id).batch
    assert (batch.items, batch.keyed, batch.draining, told.ok) == (250, 250, True, True)
    assert run().accounted == told.accounted
    assert waiting(queue) == 0
    # When items are done with results, and one fails, then rows tell of their keys and results
    by_url = {json.loads(body)["url"]: item for body, (item, _) in sent.items()}
    tracker.ack([Done(by_url["https://a/3"], result={"links": 3}), by_url["https://a/4"]])
    tracker.fail(Failure(by_url["https://a/5"], "404"))
    rows = sent_rows(tmp_path / "staging", service)
    told_of = outcomes(rows, service, keys=True, results=True)
    assert told_of.columns == ["batch_id", "ordinal", "body", "outcome", "why", "key", "result"]
    assert {row["key"]: (row["outcome"], row["why"], row["result"]) for row in told_of.collect()} == {
        **{url: ("pending", None, None) for url, _ in ROWS if url != "https://a/1"},
        "https://a/2": ("done", None, '"seen before"'),
        "https://a/3": ("done", None, '{"links":3}'),
        "https://a/4": ("done", None, None),
        "https://a/5": ("failed", "404", None),
    }
    # And so do the pages themselves, by their keys
    keyed = pages.withColumnRenamed("url", "Key")
    by_key = outcomes(keyed, service, batch_id=told.batch_id, results=True)
    assert by_key.columns == ["Key", "depth", "outcome", "why", "result"]
    wanted = by_key.where("Key IN ('https://a/1', 'https://a/3', '') OR Key IS NULL").drop("depth")
    nothing = ("unknown", "there is no item with this key in its batch", None)
    assert {tuple(row) for row in wanted.collect()} == {
        ("https://a/1", "pending", None, None),
        ("https://a/3", "done", None, '{"links":3}'),
        ("", *nothing),
        (None, *nothing),
    }
    # When the failed page is sent again, then it is an item of the new batch, without a key
    tracker.cancel(told.batch_id)
    failed = FailedRows(told.batch_id, tmp_path / "staging")
    again = fan_out(failed, queue=queue, staging=tmp_path / "again")
    assert (again.sent, again.state) == (1, State.CLOSED)
    ((body, (item, group)),) = received(queue).items()
    assert json.loads(body)["url"] == "https://a/5"
    assert (item.partition(":")[0], group) == (str(again.batch_id), "")


def test_keys_that_are_not_text_are_refused(spark, tmp_path, service):
    for run in (
        lambda: fan_out(spark.range(3), service, queue=new_queue(), staging=tmp_path / "s", keys="id"),
        lambda: outcomes(spark.range(3).withColumnRenamed("id", "key"), service, batch_id=1),
    ):
        with pytest.raises(InvalidRequest, match="has the type bigint, and keys of items are text"):
            run()
    assert not (tmp_path / "s").exists()
