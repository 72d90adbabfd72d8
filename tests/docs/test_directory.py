"""docs/how-to/patterns/directory.md says what the code says."""

from __future__ import annotations

from fanin import names
from fanin.domain import limits
from fanin.domain.directory import Left, Policy
from fanin_cdk.setting_rules import CHOICES
from tests.docs import pages

PAGE = pages.text("how-to/patterns/directory.md")


def test_it_has_the_names_of_the_code() -> None:
    for word in (
        *(reason.value for reason in Left),
        *(policy.value for policy in Policy),
        *CHOICES["unrouted"],
        *(names.INSTANCE_REGISTERED, names.INSTANCE_MOVED, names.INSTANCE_DEREGISTERED),
        *(names.INSTANCE_CREATED, names.INSTANCE_DESTROYED, names.METRIC_UNROUTED),
        *(names.ATTRIBUTE_CORRELATION, names.ATTRIBUTE_TYPE, names.CHANNEL_TAG, "channel-refused"),
    ):
        assert f"`{word}`" in PAGE, word
    assert f"`{names.ROUTE_RULE}<name>`" in PAGE
    assert f"{limits.MIN_LEASE} seconds to {limits.MAX_LEASE // 86_400} days" in PAGE
    assert f"up to {limits.MAX_METADATA} pairs" in PAGE
