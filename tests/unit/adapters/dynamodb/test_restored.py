"""Copying back from restored tables, on tables in memory; tests/e2e follows the page with real ones."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from fanin.adapters.dynamodb.restored import KEYS, RestoredTables

LOST: dict[str, list[dict[str, Any]]] = {
    "words": [{"word_id": {"S": f"{batch}/0/0"}} for batch in (6, 7, 8)],
    "parts": [{"batch_id": {"N": "7"}, "expires_at": {"N": str(at)}} for at in (99, 100)],
    "directory": [{"topic": {"S": "fleet"}}],
    "batches": [{"batch_id": {"N": "7"}}],
}


@pytest.mark.parametrize(
    ("options", "copied"),
    [
        ({}, [(3, 2), (1, 1), (1, 0), (1, 0)]),
        ({"replace": True}, [(3, 3), (1, 1), (1, 1), (1, 1)]),
        ({"write": False}, [(3, 0), (1, 0), (1, 0), (1, 0)]),
        ({"batches": [7]}, [(1, 1), (1, 1), (0, 0), (1, 0)]),
    ],
)
def test_rows_that_live_are_copied_where_they_are_missing_the_batches_last(options, copied):
    def page(**asked: Any) -> list[dict[str, Any]]:
        return [{"Items": LOST[asked["TableName"].removesuffix(".old")][asked["Segment"] :][:1]}]

    def put(**asked: Any) -> None:  # the first row of each table was not lost
        if "ConditionExpression" in asked and asked["Item"] is LOST[asked["TableName"]][0]:
            raise ClientError({"Error": {"Code": "ConditionalCheckFailedException"}}, "PutItem")

    client = SimpleNamespace(get_paginator=lambda _: SimpleNamespace(paginate=page), put_item=put)
    tables = RestoredTables({k: k for k in KEYS}, ".old", now=100, client=lambda: cast("Any", client))
    assert list(tables.copy_back(**options)) == [(k, *n) for k, n in zip(KEYS, copied, strict=True)]
