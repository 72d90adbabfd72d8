"""What a run would cost, from what was counted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from fanin.errors import AccessDenied
from fanin.spark.ack.forecast import QUOTA, forecast_of, limit_of_table


def test_half_of_eight_billion_items_takes_an_hour_at_the_quota() -> None:
    # Given 2^33 items, of which every second is done: each word is written, and none above
    made = forecast_of((2**27, 0), rows=2**32, failed=0, rejects={}, price=0.625, per_second=QUOTA)

    assert made.writes == 134_217_728
    assert made.dollars == pytest.approx(83.886, abs=0.001)
    assert made.hours == pytest.approx(0.932, abs=0.001)
    assert made.summary()["dollars"] == 83.8861
    assert made.summary()["ok"]


def test_failures_cost_their_bits_their_notes_and_their_messages() -> None:
    made = forecast_of((10, 2), rows=700, failed=60, rejects={"null": 1}, price=1, per_second=3_600)

    assert made.writes == 10 + 2 + 60 * 3
    assert made.hours * 3_600 * 3_600 == pytest.approx(192)
    assert list(made.summary())[:3] == ["ok", "dry_run", "rejects"]


class Describing:
    """A stack whose table of words is as DynamoDB describes it."""

    def __init__(self, described: dict[str, Any] | None) -> None:
        self._described = described

    def settings(self) -> Any:
        return SimpleNamespace(words_table="words")

    def connection(self) -> Any:
        return SimpleNamespace(client=self)

    def describe_table(self, TableName: str) -> dict[str, Any]:  # noqa: N803
        assert TableName == "words"
        if self._described is None:
            raise AccessDenied("dynamodb:DescribeTable")
        return {"Table": self._described}


ON_DEMAND: Final = {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}


@pytest.mark.parametrize(
    ("described", "limit"),
    [
        (
            ON_DEMAND | {"OnDemandThroughput": {"MaxWriteRequestUnits": 5_000, "MaxReadRequestUnits": -1}},
            5_000,
        ),
        (ON_DEMAND | {"OnDemandThroughput": {"MaxWriteRequestUnits": -1}}, QUOTA),
        (ON_DEMAND | {"ProvisionedThroughput": {"WriteCapacityUnits": 0}}, QUOTA),
        # as the local stack describes it
        (ON_DEMAND | {"ProvisionedThroughput": {"WriteCapacityUnits": 5}}, QUOTA),
        ({"ProvisionedThroughput": {"WriteCapacityUnits": 700}}, 700),
        ({"ProvisionedThroughput": {"WriteCapacityUnits": 0}}, QUOTA),
        ({}, QUOTA),
        (None, QUOTA),
    ],
)
def test_the_limit_is_that_of_the_table_or_the_quota(described: Any, limit: float) -> None:
    service: Any = Describing(described)
    assert limit_of_table(service) == limit
