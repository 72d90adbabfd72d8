"""What a run would cost, from what was counted."""

from types import SimpleNamespace
from typing import Any, Final

import pytest

from fanin.errors import AccessDenied
from fanin.spark.ack.driver import QUOTA, WARM, Forecast, Throughput, forecast_of, throughput_of_table

STEADY: Final = Throughput(QUOTA, QUOTA)
NEW: Final = Throughput(QUOTA, WARM)


def found(words: int, failed: int = 0, **rejects: int) -> Any:
    return SimpleNamespace(rows=700, words=words, failed=failed, rejects=rejects)


def made_of(
    words: int, table: Throughput, *, region: str = "us-east-1", rate: float | None = None
) -> Forecast:
    return forecast_of(0, found(words), region=region, table=table, per_second=rate)


def test_half_of_eight_billion_items_takes_an_hour_at_the_quota():
    # Given 2^33 items, of which every second is done: each word is written, and none above
    made = made_of(2**27, STEADY)

    assert made.writes == 134_217_728
    assert made.dollars == pytest.approx(83.886, abs=0.001)
    assert made.hours == pytest.approx(0.932, abs=0.001)
    assert made.summary()["dollars"] == 83.8861
    assert made.summary()["ok"]


def test_a_new_table_takes_its_time_to_grow():
    # Given a table that takes 4,000 writes a second, and twice as many after each half hour
    made = made_of(2**27, NEW)
    # Then it writes 7.2, 14.4, 28.8 and 57.6 million in two hours, and the rest at the quota
    assert made.hours == pytest.approx(2 + (2**27 - 108e6) / 40_000 / 3_600)
    assert (made.summary()["writes_per_second"], made.summary()["warm_writes_per_second"]) == (40_000, 4_000)
    # And a run that ends before, or that is told to write less, does not wait for that
    assert made_of(3_600_000, NEW).hours == pytest.approx(0.25)
    assert made_of(7_200_000, NEW, rate=1_000).hours == pytest.approx(2)
    assert made_of(7_200_000 + 12_600_000, NEW, rate=7_000).hours == pytest.approx(1)


def test_a_run_is_not_faster_than_its_table():
    made = made_of(3_600, Throughput(100, 100), rate=5_000)
    assert made.writes_per_second == 100
    assert made.hours == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("region", "dollars", "of", "assumed"),
    [
        ("eu-central-1", 0.7625, "eu-central-1", False),
        ("us-east-1", 0.625, "us-east-1", False),
        ("sa-east-1", 0.625, "us-east-1", True),
    ],
)
def test_the_forecast_says_whose_price_it_takes(region, dollars, of, assumed):
    told = made_of(1_000_000, STEADY, region=region).summary()
    assert (told["dollars"], told["price_region"], told["price_assumed"]) == (dollars, of, assumed)


def test_failures_cost_their_bits_their_notes_and_their_messages():
    run = found(10, 60, null=1)
    made = forecast_of(2, run, region="us-east-1", table=STEADY, per_second=3_600)

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


WARMED: Final = {"WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 30_000}}


@pytest.mark.parametrize(
    ("described", "limit", "warm"),
    [
        (
            ON_DEMAND | {"OnDemandThroughput": {"MaxWriteRequestUnits": 5_000, "MaxReadRequestUnits": -1}},
            *(5_000, WARM),
        ),
        (ON_DEMAND | {"OnDemandThroughput": {"MaxWriteRequestUnits": -1}}, QUOTA, WARM),
        # as the local stack describes it
        (ON_DEMAND | {"ProvisionedThroughput": {"WriteCapacityUnits": 5}}, QUOTA, WARM),
        (ON_DEMAND | WARMED, QUOTA, 30_000),
        (ON_DEMAND | {"WarmThroughput": {"WriteUnitsPerSecond": 90_000}}, 90_000, 90_000),
        # as the local stack describes it, which knows no warm throughput
        (ON_DEMAND | {"WarmThroughput": {"WriteUnitsPerSecond": 0}}, QUOTA, WARM),
        # provisioned throughput does not grow
        ({"ProvisionedThroughput": {"WriteCapacityUnits": 700}} | WARMED, 700, 700),
        ({"ProvisionedThroughput": {"WriteCapacityUnits": 0}}, QUOTA, WARM),
        (None, QUOTA, WARM),
    ],
)
def test_a_table_takes_what_it_says_or_the_quota(described, limit, warm):
    service: Any = Describing(described)
    assert throughput_of_table(service) == Throughput(limit, warm)
