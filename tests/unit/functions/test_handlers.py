"""The functions' handlers, from the event of their source to what they return."""

import json
import warnings
from dataclasses import replace

import pytest

from fanin import names
from fanin.adapters.dynamodb import rows
from fanin.adapters.memory import Memory
from fanin.app.ledger.service import LedgerService
from fanin.app.ports.words import Clear, WordKey
from fanin.app.services import Services
from fanin.client.tracker import Tracker
from fanin.domain.batch import Batch, OpenBatch, State
from fanin.domain.failures import Keep, KeptMessage
from fanin.domain.targets import Target, TargetType
from fanin.entry import wiring
from fanin.testing import InMemoryService
from tests.unit.entry.conftest import CONTEXT
from tests.unit.entry.test_queues import letter, message
from tests.unit.entry.test_streams import image, record, word
from tests.unit.functions.conftest import FUNCTIONS, load, metrics, posted


@pytest.fixture
def ledger(memory: Memory, monkeypatch) -> LedgerService:
    ledger = LedgerService(memory.ports())
    monkeypatch.setattr(wiring, "ledger", lambda: ledger)
    monkeypatch.setattr(wiring, "services", lambda: Services(ledger.ports))
    return ledger


class Untagged:
    """Queues without tags, and without sources."""

    def keep(self, _arn: str) -> Keep:
        return Keep.MESSAGE

    source_of = staticmethod(lambda _arn: None)


def ended(ledger: LedgerService) -> Batch:
    batch = ledger.open(OpenBatch(user_key="k"))
    return ledger.close(batch.batch_id)


def test_every_function_has_a_handler_and_every_handler_is_short():
    found = {path.parent.name for path in FUNCTIONS.glob("*/handler.py")}
    batches = {"api", "acks", "notifier", "settler", "timer", "reaper", "dead_letters", "removal"}
    patterns = {"directory", "registrar", "router", "replies", "scatter"}
    assert found == batches | patterns | {"console", "targets", "fan_out", "redriver"}
    for path in FUNCTIONS.glob("*/handler.py"):
        assert len(path.read_text().splitlines()) <= 30
        assert callable(load(path.parent.name).handler)


def test_api(ledger, capsys):
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 2)
    items = [group[0], group[0], group[1]]
    answer = posted("/v1/acks", {"marks": items}, **{"X-Correlation-Id": "trip-9"})
    assert answer["statusCode"] == 200
    assert answer["headers"][names.CORRELATION_HEADER] == "trip-9"
    assert metrics(capsys)[names.METRIC_FIRST] == [2.0]


def test_acks(ledger, capsys):
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 3)
    ledger.mark([group[0]]).whole()
    event = {"Records": [message({"marks": [item]}, item) for item in group] + [message("bad", "bad")]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = load("acks").handler(event, CONTEXT)
    assert answer == {"batchItemFailures": [{"itemIdentifier": "bad"}]}
    written = metrics(capsys)
    assert (written[names.METRIC_FIRST], written[names.METRIC_DUPLICATE]) == ([2.0], [1.0])


def test_dead_letters(ledger, set_aside, monkeypatch, capsys):
    monkeypatch.setattr(wiring, "dead_letter_queues", Untagged)
    # Given a dead message of an item, and one that is large, not ASCII, and has no item
    group = ledger.add(ledger.open(OpenBatch()).batch_id, 1)
    large = letter(None, "d2") | {"body": "é" * 100_000}
    # When the function gets them
    answer = load("dead_letters").handler({"Records": [letter(group[0], "d1"), large]}, CONTEXT)
    # Then the item failed with its message, and the other message is parked as it is
    assert ledger.failure(group.batch_id, 0).message == KeptMessage("private")
    assert answer == {"batchItemFailures": []}
    assert set_aside == [large]
    written = metrics(capsys)
    assert (written[names.METRIC_FAILED], written[names.METRIC_PARKED]) == ([1.0], [1.0])


def test_notifier(ledger, memory, retries, capsys):
    # Given the end of a batch, a record without a change, and a malformed record
    batch = ended(ledger)
    event = {
        "Records": [
            record(image(batch)),
            record(image(batch), image(batch)),
            record({"state": {"S": "complete"}}),
        ]
    }
    # When the stream brings them
    answer = load("notifier").handler(event, CONTEXT)
    # Then one event is published, and the malformed record is parked
    assert answer == {"batchItemFailures": []}
    assert [published.id for published in memory.events.published] == [f"{batch.batch_id}.complete"]
    assert len(retries.sent) == 1
    written = metrics(capsys)
    assert (written[names.METRIC_ENDED], written[names.METRIC_PARKED]) == ([1.0], [1.0])


def test_ends_are_announced_before_removed_batches_are_forgotten(ledger, memory, retries, monkeypatch):
    """Deleting the messages of one batch takes seconds, and a hundred may be removed together."""
    # Given an end behind a removal, which waits until the end was announced
    batch = ended(ledger)
    gone = replace(batch, expires_at=batch.expires_at - 1)
    announced: list[int] = []
    place = "fanin.app.ledger.service.forget"
    monkeypatch.setattr(place, lambda *_: announced.append(len(memory.events.published)))
    # When the stream brings both, with a malformed record between them
    malformed = record({"state": {"S": "complete"}})
    event = {"Records": [record(image(gone), image(batch)), malformed, record(image(batch))]}
    load("notifier").handler(event, CONTEXT)
    # Then the end comes first, and no record is left out
    assert announced == [1]
    assert len(retries.sent) == 1


def test_settler(ledger, memory, retries):
    # Given a closed batch whose last word was cleared by a process that crashed then
    batch = ledger.open(OpenBatch())
    ledger.add(batch.batch_id, 128)
    ledger.close(batch.batch_id)
    keys = [WordKey(batch.batch_id, 0, number) for number in (0, 1)]
    memory.words.clear([Clear(key, (1 << 64) - 1, batch.expires_at) for key in keys])
    assert ledger.status(batch.batch_id).batch.state is State.CLOSED
    # When the stream of words delivers them, with a malformed record
    event = {"Records": [word(rows.word_id(key), "0") for key in keys] + [word("x/y", "0")]}
    answer = load("settler").handler(event, CONTEXT)
    # Then the batch is complete
    assert answer == {"batchItemFailures": []}
    assert ledger.status(batch.batch_id).batch.state is State.COMPLETE
    assert len(retries.sent) == 1


def test_timer(ledger, memory):
    batch = ledger.open(OpenBatch(deadline=memory.clock.now() + 60_000))
    handler = load("timer").handler
    handler({"batch_id": batch.batch_id}, CONTEXT)
    assert ledger.status(batch.batch_id).batch.state is State.OPEN
    memory.clock.advance(60_000)
    handler({"batch_id": batch.batch_id}, CONTEXT)
    assert ledger.status(batch.batch_id).batch.state is State.TIMED_OUT
    handler({"batch_id": 5}, CONTEXT)


def test_reaper(ledger, memory, capsys):
    # Given an idle batch that is open, and one that is closed
    ledger.open(OpenBatch(idle_ttl=60))
    waiting = ledger.open(OpenBatch(idle_ttl=60)).batch_id
    ledger.add(waiting, 1)
    ledger.close(waiting)
    memory.clock.advance(120_000)
    # When the reaper comes twice
    first = load("reaper").handler({}, CONTEXT)
    written = metrics(capsys)
    load("reaper").handler({}, CONTEXT)
    # Then both are orphaned, the metric of the alarm counts those that were closed, and nothing is written
    # of what did not happen
    assert (first["orphaned"], first["stuck"]) == (2, 1)
    assert (written[names.METRIC_ORPHANED], written[names.METRIC_STUCK]) == ([2.0], [1.0])
    assert metrics(capsys) == {}


def test_the_reaper_counts_and_names_what_it_cannot_handle(ledger, memory, monkeypatch, capsys, caplog):
    idle = [ledger.open(OpenBatch(idle_ttl=60)).batch_id for _ in range(3)]
    memory.clock.advance(120_000)
    end = memory.batches.end

    def fail(batch_id: int, *arguments, **options):
        if batch_id == idle[1]:
            raise ValueError("nobody has foreseen this")
        return end(batch_id, *arguments, **options)

    monkeypatch.setattr(memory.batches, "end", fail)

    reaped = load("reaper").handler({}, CONTEXT)

    assert (reaped["orphaned"], reaped["failed"]) == (2, 1)
    (error,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert (error.batch_id, error.exc_info[0]) == (idle[1], ValueError)
    assert metrics(capsys)[names.METRIC_UNREAPED] == [1.0]


def test_the_reaper_begins_no_batch_in_the_last_fifth_of_its_time(ledger, memory, monkeypatch):
    for _ in range(5):
        ledger.open(OpenBatch(idle_ttl=60))
    memory.clock.advance(120_000)
    end = memory.batches.end

    def slow(*arguments, **options):
        memory.clock.advance(CONTEXT.get_remaining_time_in_millis() * 2 // 5)
        return end(*arguments, **options)

    monkeypatch.setattr(memory.batches, "end", slow)

    reaped = load("reaper").handler({}, CONTEXT)

    assert (reaped["seen"], reaped["more"]) == (2, True)


def test_targets(memory, ledger, monkeypatch, capsys):
    # Given a batch that has ended, and the job for its target
    target = Target(TargetType.STEP_FUNCTIONS, task_token="t" * 40)
    batch = ledger.open(OpenBatch(on_end=[target]))
    ledger.announce(ledger.close(batch.batch_id))
    (job,) = memory.target_jobs.waiting
    monkeypatch.setattr(wiring, "ports", lambda: ledger.ports)
    arrival = {"messageId": "m", "receiptHandle": "h", "body": json.dumps(job), "attributes": {}}
    # When
    answer = load("targets").handler({"Records": [arrival]}, CONTEXT)
    # Then it was told
    assert answer == {"batchItemFailures": []}
    assert [told.target for told in memory.callbacks.told] == [target]
    assert metrics(capsys)[names.METRIC_TARGETS_DELIVERED] == [1.0]


def test_fan_out(monkeypatch):
    service = InMemoryService()
    queue = service.queue("work")
    monkeypatch.setattr(Tracker, "from_env", lambda: service.tracker)
    on_end = [{"type": "step_functions", "task_token": "t" * 40}]
    event = {"on_end": on_end, "queue_url": queue, "messages": ["a", "b"]}
    assert load("fan_out").handler(event, CONTEXT)["sent"] == 2
