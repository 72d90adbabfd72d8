"""The listing of batches by user key: merged from all shards of the index, then the rows as they are now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from botocore.stub import Stubber

from fanin.adapters.dynamodb import DynamoBatches
from fanin.adapters.dynamodb.rows import encode
from fanin.domain.batch import Batch
from tests.unit.adapters.dynamodb.conftest import BATCH

Asked = list[dict[str, Any]]


def batch(batch_id: int) -> Batch:
    return replace(BATCH, batch_id=batch_id, user_key="k")


def place(batch_id: int) -> dict[str, Any]:
    return {"user_shard": {"S": f"k#{batch_id % 8}"}, "batch_id": {"N": str(batch_id)}}


def rows(aws: Stubber, *found: Batch) -> None:
    aws.add_response("batch_get_item", {"Responses": {"batches": [encode(row) for row in found]}})


def test_every_shard_is_asked_and_the_newest_batch_comes_first(
    batches: DynamoBatches, aws: Stubber, asked: Asked
) -> None:
    # Given shards of which the first has the newest and the oldest batch
    aws.add_response("query", {"Items": [place(80), place(8)]})
    for shard in range(1, 8):
        aws.add_response("query", {"Items": [place(shard + 16)]})
    rows(aws, *map(batch, [8, *range(17, 24), 80]))

    # When a page is listed
    page = batches.page_of_user_key("k", limit=24)

    # Then the batches are in the order of their ids, whatever the order of the rows
    assert [row.batch_id for row in page.batches] == [80, *reversed(range(17, 24)), 8]
    assert page.cursor is None
    assert asked[:-1] == [
        {
            "TableName": "batches",
            "IndexName": "by_user_key",
            "KeyConditionExpression": "user_shard = :shard",
            "ExpressionAttributeValues": {":shard": {"S": f"k#{shard}"}},
            "ScanIndexForward": False,
            "Limit": 4,
        }
        for shard in range(8)
    ]


def test_a_page_reads_no_further_than_to_the_row_that_tells_of_another_page(
    batches: DynamoBatches, aws: Stubber, asked: Asked
) -> None:
    # Given a shard that has the newest batches, one for each page of its index
    aws.add_response("query", {"Items": [place(40)], "LastEvaluatedKey": place(40)})
    for _ in range(1, 8):
        aws.add_response("query", {"Items": []})
    aws.add_response("query", {"Items": [place(32)], "LastEvaluatedKey": place(32)})
    rows(aws, batch(40))

    # When a page of one batch is listed
    page = batches.page_of_user_key("k", limit=1)

    # Then the second batch is read, since it says that there is more, and not the third
    assert page.batches == [batch(40)]
    assert page.cursor is not None
    assert len(asked) == 10
