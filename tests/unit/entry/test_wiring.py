"""The composition root: what is made of which settings, and when a missing one is noticed."""

from collections.abc import Callable, Iterable

import pytest

from fanin import names
from fanin.app.ports.events import Event
from fanin.entry import wiring
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured

TABLES = {
    names.ENV_BATCHES_TABLE: "b",
    names.ENV_WORDS_TABLE: "w",
    names.ENV_PARTS_TABLE: "p",
    names.ENV_DIRECTORY_TABLE: "d",
}


def test_tables_must_be_named_at_once():
    with pytest.raises(NotConfigured, match=names.ENV_WORDS_TABLE):
        wiring.connect(Settings(TABLES | {names.ENV_WORDS_TABLE: ""}))


@pytest.mark.parametrize(
    ("variable", "call"),
    [
        (names.ENV_SCHEDULE_GROUP, lambda ports: ports.timers.set(1, 2)),
        (names.ENV_SCHEDULE_GROUP, lambda ports: ports.timers.clear(1)),
        (names.ENV_BUS, lambda ports: ports.events.publish(Event("", "a", {}, 0))),
        (names.ENV_BUS, lambda ports: ports.rules.check({"source": ["a"]})),
        (names.ENV_BUS, lambda ports: ports.rules.put("a", {})),
        (names.ENV_BUS, lambda ports: ports.rules.delete("a")),
        (names.ENV_SCATTER_QUEUE_URL, lambda ports: ports.jobs.send([{}])),
        (names.ENV_REDRIVE_QUEUE_URL, lambda ports: ports.redrives.send([{}])),
        (names.ENV_CLAIMS_BUCKET, lambda ports: ports.claims.upload("a", size=1, content_type="b")),
        (names.ENV_CLAIMS_BUCKET, lambda ports: ports.claims.download("a")),
        (names.ENV_CLAIMS_BUCKET, lambda ports: ports.claims.exists("a")),
        (names.ENV_BUFFER_PREFIX, lambda ports: ports.queues.create("a", 7)),
    ],
)
def test_whoever_calls_what_is_not_configured_learns_which_variable_is_missing(monkeypatch, variable, call):
    # Given a process with tables and a region only
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    ports = wiring.connect(Settings(TABLES))
    # When it calls something else, then the error names the setting
    with pytest.raises(NotConfigured, match=variable):
        call(ports)


def test_a_rule_wants_a_router_too():
    ports = wiring.connect(Settings({**TABLES, names.ENV_BUS: "bus"}))

    with pytest.raises(NotConfigured, match=names.ENV_ROUTER_ARN):
        ports.rules.put("a", {"source": ["b"]})


@pytest.mark.parametrize(
    "missing", [names.ENV_SCHEDULE_ROLE_ARN, names.ENV_TIMER_ARN, names.ENV_TIMER_DLQ_ARN]
)
def test_an_alarm_wants_all_of_its_settings(missing):
    alarms = (
        names.ENV_SCHEDULE_GROUP,
        names.ENV_SCHEDULE_ROLE_ARN,
        names.ENV_TIMER_ARN,
        names.ENV_TIMER_DLQ_ARN,
    )
    ports = wiring.connect(Settings({**TABLES, **dict.fromkeys(alarms, "there"), missing: ""}))

    with pytest.raises(NotConfigured, match=missing):
        ports.timers.set(1, 2)


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

    class Queue:
        def __init__(self, url: Callable[[], str]) -> None:
            self._url = url

        def send(self, messages: Iterable[object]) -> None:
            sent.extend((self._url(), message) for message in messages)

    monkeypatch.setattr(wiring, "SqsQueue", Queue)
    return sent


def test_all_services_of_a_process_stand_on_the_same_ports(environment):
    environment(**TABLES, **{names.ENV_LIFETIME: "3600"})
    assert wiring.services() is wiring.services()
    assert wiring.services().ledger is wiring.ledger()
    assert wiring.ledger().ports is wiring.ports()
    assert wiring.ports().defaults.lifetime == 3600


def test_what_cannot_be_handled_is_parked_in_the_retry_queue(environment, sent):
    environment(**{names.ENV_RETRY_QUEUE_URL: "https://sqs/retries"})
    wiring.park({"messageId": "m1"})
    assert sent == [("https://sqs/retries", {"messageId": "m1"})]


def test_what_is_set_aside_is_sent_as_it_is(environment, monkeypatch):
    environment(**{names.ENV_RETRY_QUEUE_URL: "https://sqs/dead"})
    copied: list[tuple[str, object]] = []
    monkeypatch.setattr(wiring.received(), "send_to", lambda url, message: copied.append((url, message)))
    wiring.set_aside({"messageId": "m1"})
    assert copied == [("https://sqs/dead", {"messageId": "m1"})]


def test_parking_without_a_retry_queue_says_what_is_missing(environment):
    environment()
    with pytest.raises(NotConfigured, match=names.ENV_RETRY_QUEUE_URL):
        wiring.park({"messageId": "m1"})


def test_an_unrouted_event_is_kept_only_where_there_is_a_queue_for_it(environment, sent):
    environment()
    wiring.keep_unrouted({"id": "e1"})
    environment(**{names.ENV_UNROUTED_QUEUE_URL: "https://sqs/unrouted"})
    wiring.keep_unrouted({"id": "e2"})
    assert sent == [("https://sqs/unrouted", {"id": "e2"})]
