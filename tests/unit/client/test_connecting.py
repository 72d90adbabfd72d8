"""Where a tracker finds its stack."""

import json
from dataclasses import asdict, replace
from datetime import timedelta

import pytest

from fanin import Tracker
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Services
from fanin.client.https.services import HttpsLedger
from fanin.entry.settings import Settings
from fanin.errors import InvalidRequest, NotConfigured
from tests.unit.local_stacks import STACK


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    for name in ("FANIN_PROFILE", "FANIN_API_URL", "FANIN_BATCHES_TABLE", "FANIN_ACK_QUEUE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def a_local_stack(tmp_path, monkeypatch):
    (tmp_path / ".fanin").mkdir()
    (tmp_path / ".fanin/local.json").write_text(json.dumps({**asdict(STACK), "something_else": 1}))
    deep = tmp_path / "a/b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)


@pytest.mark.usefixtures("a_local_stack")
def test_the_local_profile_finds_the_stack_from_a_folder_below(monkeypatch):
    monkeypatch.setenv("FANIN_PROFILE", "local")
    monkeypatch.setenv("FANIN_API_URL", "https://elsewhere")
    tracker = Tracker.from_env()
    assert isinstance(tracker.ledger, HttpsLedger)
    assert tracker.sqs.meta.endpoint_url == STACK.endpoint_url
    assert tracker._ack_queue_url == STACK.ack_queue_url


@pytest.mark.usefixtures("a_local_stack")
def test_the_local_stack_of_another_folder(monkeypatch, tmp_path):
    monkeypatch.chdir("/")
    assert Tracker.local(tmp_path / "a")._ack_queue_url == STACK.ack_queue_url
    with pytest.raises(NotConfigured, match="fanin local up"):
        Tracker.local()


def test_an_api(monkeypatch):
    monkeypatch.setenv("FANIN_API_URL", "https://x.example.com/")
    monkeypatch.setenv("FANIN_ACK_QUEUE_URL", "https://sqs/acks")
    tracker = Tracker.from_env()
    assert isinstance(tracker.ledger, HttpsLedger)
    assert tracker._ack_queue_url == "https://sqs/acks"


def test_nothing_set_names_what_could_be():
    with pytest.raises(NotConfigured, match=r"FANIN_API_URL.*FANIN_PROFILE.*FANIN_BATCHES_TABLE"):
        Tracker.from_env()


def test_tables(monkeypatch):
    for table in ("BATCHES", "WORDS", "PARTS", "DIRECTORY"):
        monkeypatch.setenv(f"FANIN_{table}_TABLE", table.lower())
    monkeypatch.setenv("FANIN_ACK_QUEUE_URL", "https://sqs/acks")
    tracker = Tracker.from_env()
    assert isinstance(tracker.ledger, LedgerService)
    assert tracker._ack_queue_url == "https://sqs/acks"


def test_tables_half_named_say_which_is_missing():
    with pytest.raises(NotConfigured, match="FANIN_WORDS_TABLE"):
        Tracker.direct(Settings({"FANIN_BATCHES_TABLE": "b", "FANIN_PARTS_TABLE": "p"}))


class TestInMemory:
    """``Tracker.in_memory()`` behaves as a deployed service does, by the machine's clock."""

    def test_a_deadline_ends_a_batch(self):
        tracker = Tracker.in_memory()
        batch = tracker.open(deadline=timedelta(seconds=0.5))
        assert tracker.wait(batch.batch_id, timeout=60).batch.state == "timed_out"

    @pytest.mark.parametrize("via", ["api", "queue"])
    def test_work_is_sent_and_consumed_without_aws(self, via):
        tracker, seen = Tracker.in_memory(), []
        url = tracker.sqs.create_queue(QueueName="rows")["QueueUrl"]
        with tracker.batch() as batch:
            batch.send(url, ["a", "b", "c"])
        consumer = tracker.consumer(url, lambda message: seen.append(message.body), via=via, wait=0)
        consumer.run(until=lambda: batch.status().batch.state.terminal)
        assert sorted(seen) == ["a", "b", "c"]


TABLES = Settings({f"FANIN_{name}_TABLE": name for name in ("BATCHES", "WORDS", "PARTS", "DIRECTORY")})


def test_a_program_on_the_tables_may_give_itself_a_name():
    services = Tracker.direct(TABLES, opened_by="nightly import").services
    assert isinstance(services, Services)
    # Given the same defaults over stores in memory, then its batches, of whatever kind, have that name
    ports = replace(Memory().ports(), defaults=services.ports.defaults)
    batch = Tracker(Services(ports)).open()
    assert batch.opened_by == "nightly import"
    with pytest.raises(InvalidRequest, match="opened_by must"):
        Tracker.direct(TABLES, opened_by="x" * 257)
