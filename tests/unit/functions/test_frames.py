"""The metrics of frames that functions write, from opening to end."""

import pytest

from fanin import names
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.services import Patterns, Services
from fanin.domain.batch import Batch
from fanin.domain.frames import OpenFrame
from fanin.entry import wiring
from tests.unit.entry.conftest import CONTEXT
from tests.unit.entry.test_streams import image, record
from tests.unit.functions.conftest import load, metrics, posted

TTL = 60


@pytest.fixture
def services(memory: Memory, monkeypatch) -> Services:
    ledger = LedgerService(memory.ports(), Patterns(memory.ports()))
    services = Services(ledger.ports)
    monkeypatch.setattr(wiring, "ledger", lambda: ledger)
    monkeypatch.setattr(wiring, "services", lambda: services)
    return services


def frame(services: Services) -> int:
    return services.frames.open(OpenFrame(2, ttl=TTL)).frame_id


def row(memory: Memory, frame_id: int) -> Batch:
    return memory.batches.read([frame_id])[frame_id]


def reap(memory: Memory, capsys) -> dict[str, list[float]]:
    """What the reaper counts when the frames have been idle."""
    memory.clock.advance(TTL * 1000 + 1000)
    load("reaper").handler({}, CONTEXT)
    return metrics(capsys)


def told(batch: Batch, capsys) -> dict[str, list[float]]:
    """What the notifier counts of an end."""
    load("notifier").handler({"Records": [record(image(batch))]}, CONTEXT)
    return metrics(capsys)


def test_the_api_counts_frames_that_are_opened(services, capsys):
    assert posted("/v1/frames", {"size": 2})["statusCode"] == 201
    assert metrics(capsys) == {names.METRIC_FRAMES_OPENED: [1.0]}


def test_a_stale_frame_counts_as_a_repeat_and_then_as_timed_out(services, memory, capsys):
    frame_id = frame(services)

    assert reap(memory, capsys)[names.METRIC_REPEATS] == [1.0]
    later = reap(memory, capsys)
    assert names.METRIC_REPEATS not in later
    assert later[names.METRIC_TIMED_OUT] == [1.0]

    ended = told(row(memory, frame_id), capsys)
    assert ended == {names.METRIC_ENDED: [1.0], names.METRIC_FRAMES_TIMED_OUT: [1.0]}
