"""Prices of AWS: what is known of a region, and prices of one's own."""

from datetime import date

import pytest

from fanin.domain.prices import BY_REGION, DEFAULT, prices_of
from fanin.errors import InvalidRequest


@pytest.mark.parametrize("region", BY_REGION)
def test_a_region_says_when_and_where_its_prices_were_read(region):
    prices = prices_of(region)
    assert date(2026, 1, 1) < date.fromisoformat(prices.since)
    assert prices.source
    # And what is assumed is a price, and that of us-east-1
    assert set(prices.assumed) <= set(prices.amounts())
    assert all(getattr(prices, name) == getattr(DEFAULT, name) for name in prices.assumed)


def test_an_unknown_region_is_told_which_are_known():
    with pytest.raises(
        InvalidRequest, match=r"'mars-1' are not known; they are for us-east-1, .* --prices FILE"
    ):
        prices_of("mars-1")


def test_own_prices_replace_those_of_the_region():
    prices = DEFAULT.with_own({"write": 1, "log_gb": 0}, "mine.json")
    assert (prices.write, prices.log_gb, prices.read) == (1.0, 0.0, DEFAULT.read)
    assert prices.source == "mine.json"


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"wirte": 1}, "there is no price 'wirte'; there are write, read"),
        ({"write": "1"}, "the price write must be dollars"),
        ({"write": True}, "the price write must be dollars"),
        ({"write": -1}, "from 0 below 1,000,000"),
        ({"write": float("nan")}, "the price write must be dollars"),
        ({"region": "x"}, "there is no price 'region'"),
    ],
)
def test_what_is_not_a_price_is_refused_with_the_name_of_the_file(own, said):
    with pytest.raises(InvalidRequest, match=said) as refused:
        DEFAULT.with_own(own, "mine.json")
    assert str(refused.value).startswith("mine.json: ")
