"""What a task that scans asks of DynamoDB, page by page."""

import json
from collections.abc import Collection
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.connection import Connection
from fanin.errors import Throttled
from fanin.spark.auditing.tables import line, read_segment


class DynamoDB:
    """A client that gives scripted pages of segments, and keeps what it was asked.

    Args:
        pages: of each segment.
    """

    def __init__(self, *pages: list[list[dict[str, Any]]]) -> None:
        self._pages = pages
        self.asked: list[dict[str, Any]] = []

    def scan(self, **request: Any) -> dict[str, Any]:
        self.asked.append(dict(request))
        pages, number = self._pages[request["Segment"]], request.get("ExclusiveStartKey", 0)
        more = {"LastEvaluatedKey": number + 1} if number + 1 < len(pages) else {}
        return {"Items": pages[number], **more}


class Stack:
    """A stack whose connection asks the client again for ten seconds, of which each wait takes one."""

    def __init__(self, dynamodb: Any) -> None:
        self._dynamodb = dynamodb
        self._now = 0.0

    def connection(self) -> Connection:
        backoff = Backoff(tries=100, sleep=self._wait, clock=lambda: self._now)
        return Connection(client=lambda: self._dynamodb, backoff=backoff, patience=10)

    def _wait(self, _: float) -> None:
        self._now += 1


def scanned(dynamodb: Any, segment: int, *, consistent: bool = True) -> list[list[dict[str, Any]]]:
    """The rows of each page."""
    stack: Any = Stack(dynamodb)
    pages = read_segment(stack, "words", segment, segments=2, consistent=consistent)
    return [[json.loads(one)["Item"] for one in page] for page in pages]


def row(n: int) -> dict[str, Any]:
    return {"word_id": {"S": f"7/0/{n}"}}


def test_all_pages_of_a_segment_are_read_and_each_is_given_at_once():
    dynamodb = DynamoDB([[row(0), row(1)], [], [row(2)]], [[row(3)]])
    assert scanned(dynamodb, 0) == [[row(0), row(1)], [], [row(2)]]
    assert [request.get("ExclusiveStartKey") for request in dynamodb.asked] == [None, 1, 2]


@pytest.mark.parametrize("consistent", [True, False])
def test_a_request_names_the_table_and_its_part_of_it(consistent):
    dynamodb = DynamoDB([], [[row(0)]])
    scanned(dynamodb, 1, consistent=consistent)
    assert dynamodb.asked == [
        {"TableName": "words", "Segment": 1, "TotalSegments": 2, "ConsistentRead": consistent}
    ]


class Busy(DynamoDB):
    """Refuses some requests; others it answers."""

    def __init__(self, *pages: list[list[dict[str, Any]]], refused: Collection[int]) -> None:
        super().__init__(*pages)
        self._refused = refused

    def scan(self, **request: Any) -> dict[str, Any]:
        answer = super().scan(**request)
        if len(self.asked) in self._refused:
            raise ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "Scan")
        return answer


def test_only_the_page_that_was_refused_is_read_again():
    dynamodb = Busy([[row(0)], [row(1)], [row(2)]], refused=range(2, 11))

    assert scanned(dynamodb, 0) == [[row(0)], [row(1)], [row(2)]]
    assert [one.get("ExclusiveStartKey") for one in dynamodb.asked] == [None, *[1] * 10, 2]


def test_a_table_that_refuses_for_longer_raises_throttled():
    dynamodb = Busy([[row(0)]], refused=range(1_000))
    with pytest.raises(Throttled):
        scanned(dynamodb, 0)
    assert len(dynamodb.asked) == 11


def test_a_line_is_low_level_json_with_bytes_in_base64():
    item = {"batch_id": {"N": "7"}, "salt": {"B": b"\x00\xff"}}
    assert json.loads(line(item)) == {"Item": {"batch_id": {"N": "7"}, "salt": {"B": "AP8="}}}
