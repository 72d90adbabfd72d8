"""docs/how-to/patterns/directory.md runs, and says what the code says."""

from __future__ import annotations

import pytest

import fanin
from fanin import Tracker, names
from fanin.adapters.memory import Memory
from fanin.app.services import Services
from fanin.domain import limits
from fanin.domain.directory import Left
from fanin.domain.routing import Policy
from fanin_cdk.setting_rules import CHOICES
from tests.docs import pages

PAGE = pages.text("how-to/patterns/directory.md")


def test_the_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # Given two queues that are channels
    memory = Memory()
    memory.channels.queues |= {"car": [], "desk": []}
    monkeypatch.setattr(fanin.Tracker, "from_env", lambda: Tracker(Services(memory.ports())))
    (example,) = pages.code("how-to/patterns/directory.md")
    # When the example is run
    exec(example, {"queue_url": "car", "desk_url": "desk"})  # noqa: S102
    # Then it finds the instance, and the event that it puts is one for its route
    told = capsys.readouterr().out.splitlines()
    (event,) = memory.events.published
    assert told == ["['vin-1']", event.detail["correlation_id"]]
    sent = {"source": event.source, "detail-type": event.detail_type, "detail": event.detail}
    assert memory.rules.matching(sent) == ["orders"]


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
