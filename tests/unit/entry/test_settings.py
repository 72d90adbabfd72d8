"""The environment: each value checked when it is asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

import fanin
from fanin import names
from fanin.app.ports import Defaults, Ports
from fanin.app.ports.events import Event
from fanin.domain.batch import OpenBatch
from fanin.entry import wiring
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured

TABLES = {
    names.ENV_BATCHES_TABLE: "b",
    names.ENV_WORDS_TABLE: "w",
    names.ENV_PARTS_TABLE: "p",
    names.ENV_DIRECTORY_TABLE: "d",
}
TEXTS = {
    "batches_table": names.ENV_BATCHES_TABLE,
    "words_table": names.ENV_WORDS_TABLE,
    "parts_table": names.ENV_PARTS_TABLE,
    "directory_table": names.ENV_DIRECTORY_TABLE,
    "bus": names.ENV_BUS,
    "schedule_group": names.ENV_SCHEDULE_GROUP,
    "schedule_role_arn": names.ENV_SCHEDULE_ROLE_ARN,
    "timer_arn": names.ENV_TIMER_ARN,
    "timer_dlq_arn": names.ENV_TIMER_DLQ_ARN,
    "retry_queue_url": names.ENV_RETRY_QUEUE_URL,
    "router_arn": names.ENV_ROUTER_ARN,
    "scatter_queue_url": names.ENV_SCATTER_QUEUE_URL,
    "claims_bucket": names.ENV_CLAIMS_BUCKET,
    "buffer_prefix": names.ENV_BUFFER_PREFIX,
}


@pytest.mark.parametrize(("setting", "variable"), TEXTS.items())
def test_a_setting_is_its_variable_and_a_missing_one_names_it(setting: str, variable: str) -> None:
    assert getattr(Settings({variable: "there"}), setting) == "there"
    for environment in ({}, {variable: ""}):
        with pytest.raises(NotConfigured, match=variable):
            getattr(Settings(environment), setting)


@pytest.mark.parametrize(
    ("setting", "variable"),
    [
        ("ack_queue_url", names.ENV_ACK_QUEUE_URL),
        ("unrouted_queue_url", names.ENV_UNROUTED_QUEUE_URL),
    ],
)
def test_a_setting_that_may_be_missing_is_none_then(setting: str, variable: str) -> None:
    assert getattr(Settings({variable: "there"}), setting) == "there"
    for environment in ({}, {variable: ""}):
        assert getattr(Settings(environment), setting) is None


def test_durations_have_defaults() -> None:
    assert Settings({}).defaults == Defaults()
    assert Settings({names.ENV_LIFETIME: "3600", names.ENV_OPEN_IDLE_TTL: "60"}).defaults == Defaults(
        open_idle_ttl=60, lifetime=3600
    )


@pytest.mark.parametrize("value", ["0", "-5", "1.5", "2h", "٣"])
def test_a_duration_that_is_no_number_of_seconds_is_refused(value: str) -> None:
    with pytest.raises(NotConfigured, match=names.ENV_CLOSED_IDLE_TTL):
        _ = Settings({names.ENV_CLOSED_IDLE_TTL: value}).defaults


def test_tables_must_be_named_and_the_rest_may_wait() -> None:
    # Given settings with tables only
    ports = wiring.connect(Settings(TABLES))

    # Then alarms and bus say what is missing when they are called
    with pytest.raises(NotConfigured, match=names.ENV_SCHEDULE_GROUP):
        ports.timers.set(1, 2)
    with pytest.raises(NotConfigured, match=names.ENV_SCHEDULE_GROUP):
        ports.timers.clear(1)
    with pytest.raises(NotConfigured, match=names.ENV_BUS):
        ports.events.publish(None)

    # And tables say so at once
    with pytest.raises(NotConfigured, match=names.ENV_WORDS_TABLE):
        wiring.connect(Settings(TABLES | {names.ENV_WORDS_TABLE: ""}))


@pytest.mark.parametrize(
    ("variable", "call"),
    [
        (names.ENV_SCHEDULE_GROUP, lambda ports: ports.timers.set(1, 2)),
        (names.ENV_SCHEDULE_GROUP, lambda ports: ports.timers.clear(1)),
        (names.ENV_BUS, lambda ports: ports.events.publish(Event("", "a", {}, 0))),
        (names.ENV_BUS, lambda ports: ports.rules.matches({"source": ["a"]}, {})),
        (names.ENV_BUS, lambda ports: ports.rules.put("a", {})),
        (names.ENV_BUS, lambda ports: ports.rules.delete("a")),
        (names.ENV_SCATTER_QUEUE_URL, lambda ports: ports.jobs.send([{}])),
        (names.ENV_CLAIMS_BUCKET, lambda ports: ports.claims.upload("a", size=1, content_type="b")),
        (names.ENV_CLAIMS_BUCKET, lambda ports: ports.claims.download("a")),
        (names.ENV_CLAIMS_BUCKET, lambda ports: ports.claims.exists("a")),
        (names.ENV_BUFFER_PREFIX, lambda ports: ports.queues.create("a")),
    ],
)
def test_whoever_calls_what_is_not_configured_learns_which_variable_is_missing(
    monkeypatch: pytest.MonkeyPatch, variable: str, call: Callable[[Ports], object]
) -> None:
    # Given a process with tables and a region only
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    ports = wiring.connect(Settings(TABLES))

    # When it calls something else, then the error names the setting
    with pytest.raises(NotConfigured, match=variable):
        call(ports)


def test_a_rule_wants_a_router_too() -> None:
    ports = wiring.connect(Settings({**TABLES, names.ENV_BUS: "bus"}))

    with pytest.raises(NotConfigured, match=names.ENV_ROUTER_ARN):
        ports.rules.put("a", {"source": ["b"]})


@pytest.mark.parametrize(
    "missing", [names.ENV_SCHEDULE_ROLE_ARN, names.ENV_TIMER_ARN, names.ENV_TIMER_DLQ_ARN]
)
def test_an_alarm_wants_all_of_its_settings(missing: str) -> None:
    alarms = (
        names.ENV_SCHEDULE_GROUP,
        names.ENV_SCHEDULE_ROLE_ARN,
        names.ENV_TIMER_ARN,
        names.ENV_TIMER_DLQ_ARN,
    )
    ports = wiring.connect(Settings({**TABLES, **dict.fromkeys(alarms, "there"), missing: ""}))

    with pytest.raises(NotConfigured, match=missing):
        ports.timers.set(1, 2)


def test_wiring_makes_one_ledger_for_a_process(monkeypatch) -> None:
    for cached in (wiring.settings, wiring.ports, wiring.ledger, wiring.retry_queue):
        cached.cache_clear()
    for name, value in {**TABLES, names.ENV_LIFETIME: "3600"}.items():
        monkeypatch.setenv(name, value)

    assert wiring.ledger() is wiring.ledger()
    assert wiring.ledger().ports.defaults.lifetime == 3600
    with pytest.raises(NotConfigured, match=names.ENV_SCHEDULE_GROUP):
        wiring.ledger().open(OpenBatch(deadline=wiring.ports().clock.now() + 60_000))
    for cached in (wiring.settings, wiring.ports, wiring.ledger):
        cached.cache_clear()


def test_nothing_else_in_the_functions_code_reads_the_environment() -> None:
    root = Path(fanin.__file__).parent
    readers = set()
    for room in ("domain", "app", "adapters", "entry"):
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv"):
                    readers.add(str(path.relative_to(root)))
    assert readers == {"entry/settings.py"}
