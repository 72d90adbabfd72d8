"""The composition root: what is made of which settings, and when a missing one is noticed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from fanin import names
from fanin.adapters.sqs import SqsQueue
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


@pytest.fixture
def environment(monkeypatch):
    """A process that starts with these variables only."""
    made = (wiring.settings, wiring.ports, wiring.services, wiring.ledger)
    made += (wiring.retry_queue, wiring.unrouted_queue)

    def forget() -> None:
        for cached in made:
            cached.cache_clear()

    def start(**variables: str) -> None:
        forget()
        for name in (names.ENV_RETRY_QUEUE_URL, names.ENV_UNROUTED_QUEUE_URL):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    yield start
    forget()


@pytest.fixture
def sent(monkeypatch) -> list[tuple[str, object]]:
    """What every queue is sent: its URL, and the message."""
    sent: list[tuple[str, object]] = []

    def send(queue: SqsQueue, messages: Iterable[object]) -> None:
        sent.extend((queue._url, message) for message in messages)

    monkeypatch.setattr(SqsQueue, "send", send)
    return sent


def test_all_services_of_a_process_stand_on_the_same_ports(environment) -> None:
    environment(**TABLES)
    assert wiring.services() is wiring.services()
    assert wiring.services().ledger is wiring.ledger()
    assert wiring.ledger().ports is wiring.ports()


def test_what_cannot_be_handled_is_parked_in_the_retry_queue(
    environment, sent: list[tuple[str, object]]
) -> None:
    environment(**{names.ENV_RETRY_QUEUE_URL: "https://sqs/retries"})
    wiring.park({"messageId": "m1"})
    assert sent == [("https://sqs/retries", {"messageId": "m1"})]


def test_parking_without_a_retry_queue_says_what_is_missing(environment) -> None:
    environment()
    with pytest.raises(NotConfigured, match=names.ENV_RETRY_QUEUE_URL):
        wiring.park({"messageId": "m1"})


def test_an_unrouted_event_is_kept_only_where_there_is_a_queue_for_it(
    environment, sent: list[tuple[str, object]]
) -> None:
    environment()
    wiring.keep_unrouted({"id": "e1"})
    environment(**{names.ENV_UNROUTED_QUEUE_URL: "https://sqs/unrouted"})
    wiring.keep_unrouted({"id": "e2"})
    assert sent == [("https://sqs/unrouted", {"id": "e2"})]
