"""docs/how-to/production.md: its quotas are those that ``fanin plan`` computes."""

import re
from pathlib import Path

from fanin.domain.costs import costs
from fanin.domain.planning import needs
from fanin_cdk import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "production.md").read_text()
RATES = (278, 2_778, 27_778)
"""A million, ten and a hundred million items in an hour, a second."""


def test_the_quotas_are_those_that_the_plan_computes():
    # Given what the default way takes at each rate
    assert all(f"{rate:,}" in PAGE for rate in RATES)
    taken = [needs(costs(1_000_000, rate=rate)[1], 1_000_000, rate=rate) for rate in RATES]
    # Then the table has it, and the quota of an account
    rows = {
        name: [int(one.replace(",", "")) for one in numbers.split(" | ")]
        for name, numbers in re.findall(r"^\| ([\w ]+: [^|]+) \| ([\d, |]+) \|$", PAGE, re.MULTILINE)
    }
    for quota in taken[0]:
        assert rows.pop(f"{quota.service}: {quota.name}") == [quota.default, *(one[quota] for one in taken)]
    # And what no rate decides, but a setting
    most = Settings().pipeline_max_vcpu
    assert rows == {"EMR Serverless: Max concurrent vCPUs per account": [16, most, most, most]}
