"""The listing of batches: one shard of the index after the other, then the rows as they are now.

The listing of batches by user key: merged from all shards of the index, then the rows as they are now.
"""

from dataclasses import replace
from typing import Any

from botocore.stub import Stubber

from fanin.adapters.dynamodb.rows import encode
from fanin.app.ports.batches import BatchRows
from fanin.domain.batch import Batch, State
from tests.unit.adapters.dynamodb.conftest import BATCH

Asked = list[dict[str, Any]]


def batch(batch_id: int, state: State = State.OPEN) -> Batch:
    return replace(BATCH, batch_id=batch_id, state=state)


def place(batch_id: int, due_at: int = 90) -> dict[str, Any]:
    return {
        "shelf": {"S": f"open#{batch_id % 8}"},
        "due_at": {"N": str(due_at)},
        "batch_id": {"N": str(batch_id)},
    }


def rows(aws: Stubber, *found: Batch) -> None:
    aws.add_response("batch_get_item", {"Responses": {"batches": [encode(row) for row in found]}})


def test_all_shards_are_asked_in_turn_for_what_the_page_still_lacks(batches, aws, asked):
    for shard in range(8):
        aws.add_response("query", {"Items": [place(shard)] if shard % 3 == 0 else []})
    rows(aws, batch(0), batch(3), batch(6))

    assert batches.page(State.OPEN, limit=10) == BatchRows([batch(0), batch(3), batch(6)], None)

    assert asked[:-1] == [
        {
            "TableName": "batches",
            "IndexName": "by_shelf",
            "KeyConditionExpression": "shelf = :shard",
            "ExpressionAttributeValues": {":shard": {"S": f"open#{shard}"}},
            "Limit": limit,
        }
        for shard, limit in enumerate([10, 9, 9, 9, 8, 8, 8, 7])
    ]


class TestDue:
    """What is due is merged from the shards of both live states."""

    def test_is_asked_of_every_shard_and_comes_the_longest_due_first(self, batches, aws, asked):
        for number in range(16):
            aws.add_response(
                "query", {"Items": [place(number, 90 - number), place(number + 16, 200 + number)]}
            )

        assert list(batches.due(300)) == [*reversed(range(16)), *range(16, 32)]

        assert [query["ExpressionAttributeValues"] for query in asked] == [
            {":shard": {"S": f"{state}#{shard}"}, ":due_before": {"N": "300"}}
            for state in ("open", "closed")
            for shard in range(8)
        ]

    def test_goes_on_within_a_shard_when_it_comes_to_the_end_of_a_page(self, batches, aws, asked):
        # Given a shard with two pages, and others with a batch each that is due later
        aws.add_response("query", {"Items": [place(0, 1), place(8, 2)], "LastEvaluatedKey": place(8, 2)})
        for shard in range(1, 16):
            aws.add_response("query", {"Items": [place(shard, 50)]})
        due = batches.due(300)

        assert [next(due), next(due)] == [0, 8]
        assert len(asked) == 16
        aws.add_response("query", {"Items": [place(16, 3)]})
        assert next(due) == 16
        assert asked[-1]["ExclusiveStartKey"] == place(8, 2)
        assert sorted(due) == list(range(1, 16))


def keyed(batch_id: int) -> Batch:
    return replace(BATCH, batch_id=batch_id, user_key="k")


def keyed_place(batch_id: int) -> dict[str, Any]:
    return {"user_shard": {"S": f"k#{batch_id % 8}"}, "batch_id": {"N": str(batch_id)}}


def test_every_shard_is_asked_and_the_newest_batch_comes_first(batches, aws, asked):
    # Given shards of which the first has the newest and the oldest batch
    aws.add_response("query", {"Items": [keyed_place(80), keyed_place(8)]})
    for shard in range(1, 8):
        aws.add_response("query", {"Items": [keyed_place(shard + 16)]})
    rows(aws, *map(keyed, [8, *range(17, 24), 80]))
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


def test_a_page_reads_no_further_than_to_the_row_that_tells_of_another_page(batches, aws, asked):
    # Given a shard that has the newest batches, one for each page of its index
    aws.add_response("query", {"Items": [keyed_place(40)], "LastEvaluatedKey": keyed_place(40)})
    for _ in range(1, 8):
        aws.add_response("query", {"Items": []})
    aws.add_response("query", {"Items": [keyed_place(32)], "LastEvaluatedKey": keyed_place(32)})
    rows(aws, keyed(40))
    # When a page of one batch is listed
    page = batches.page_of_user_key("k", limit=1)
    # Then the second batch is read, since it says that there is more, and not the third
    assert page.batches == [keyed(40)]
    assert page.cursor is not None
    assert len(asked) == 10
