"""docs/how-to/dramatiq.md runs on a worker of Dramatiq with its broker in memory."""

import sys
import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import dramatiq
import pytest
from dramatiq.brokers.stub import StubBroker
from dramatiq.middleware import AgeLimit, MiddlewareError, Retries, SkipMessage

from fanin import Tracker
from fanin.contrib import dramatiq as contrib
from fanin.contrib.dramatiq import TrackItems
from fanin.testing import Fault, InMemoryService
from fanin.types import Batch, State
from tests.docs import pages
from tests.docs.kept import reasons

WORKER, PRODUCER, AGAIN = pages.code("how-to/dramatiq.md")
SOON_MS = 1


class Shop:
    """A service, the page's modules on it with a broker of their own, and what the worker did."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.service = InMemoryService()
        self.tracker = self.service.tracker
        self.ran: list[str] = []
        self.errors: dict[str, Exception] = {}
        self.broker = StubBroker(middleware=[AgeLimit(), Retries(min_backoff=SOON_MS, max_backoff=SOON_MS)])
        patch.setattr(Tracker, "from_env", lambda: self.tracker)
        patch.setattr(dramatiq.broker, "global_broker", None)
        patch.setattr(contrib, "FIRST_WAIT_MS", SOON_MS)
        shop, self.tasks = ModuleType("shop"), ModuleType("tasks")
        vars(shop).update(broker=self.broker, store=self._store)
        patch.setitem(sys.modules, "shop", shop)
        patch.setitem(sys.modules, "tasks", self.tasks)
        exec(compile(WORKER, "tasks.py", "exec"), vars(self.tasks))
        scope: dict[str, Any] = {}
        exec(compile(PRODUCER, "producer.py", "exec"), scope)
        self._import_catalog = scope["import_catalog"]

    def _store(self, row: dict[str, str]) -> None:
        self.ran.append(row["sku"])
        if row["sku"] in self.errors:
            raise self.errors[row["sku"]]

    def import_catalog(self, *skus: str) -> int:
        made: int = self._import_catalog("shoes", [{"sku": sku} for sku in skus])
        return made

    def work(self) -> None:
        """Run a worker until nothing is left to do."""
        worker = dramatiq.Worker(self.broker, worker_timeout=10, worker_threads=4)
        worker.start()
        try:
            self.broker.join("default", timeout=30_000, fail_fast=False)
            worker.join()
        finally:
            worker.stop()

    def finish(self, batch_id: int) -> Batch:
        """Run a worker; then the batch is complete."""
        self.work()
        batch = self.tracker.status(batch_id).batch
        assert batch.state is State.COMPLETE
        return batch


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    shop = Shop(monkeypatch)
    yield shop
    shop.broker.close()


def test_a_batch_is_complete_when_its_last_message_is_handled(shop):
    # Given messages that were sent twice, since their producer died before it closed the batch
    skus = [str(n) for n in range(50)]
    shop.service.on_call = Fault("batches.close")
    with pytest.raises(Exception, match="for a test"):
        shop.import_catalog(*skus)
    batch_id = shop.import_catalog(*skus)
    # When a worker handles them
    shop.finish(batch_id)
    # Then each counts once, and one event tells of the end
    assert sorted(shop.ran) == sorted(skus * 2)
    (event,) = shop.service.events_of(batch_id)
    assert (event.detail["items"], event.detail["failed"]) == (50, 0)
    # And a third call of the producer sends nothing
    assert shop.import_catalog(*skus) == batch_id
    assert shop.broker.queues["default"].empty()


def test_a_retry_is_an_attempt_and_the_last_one_fails_the_item(shop):
    # Given a message that is retried in vain, one that is not retried, and one that succeeds
    shop.errors = {"down": ConnectionError("no route"), "bad": LookupError("no price")}
    batch_id = shop.import_catalog("down", "bad", "good")
    accesses: list[str] = []
    shop.service.on_call = lambda access, moment: accesses.append(f"{moment} {access}")
    # When a worker handles them
    batch = shop.finish(batch_id)
    # Then each attempt was made, and each that was retried was noted
    assert sorted(shop.ran) == ["bad", *["down"] * 4, "good"]
    assert accesses.count("before parts.put_retries") == 3
    # And the two have failed for good, and what they were called with is kept
    assert (batch.items, batch.failed) == (3, 2)
    assert reasons(shop.tracker, batch_id) == {
        '{"args":[{"sku":"down"}],"kwargs":{}}': "ConnectionError: no route",
        '{"args":[{"sku":"bad"}],"kwargs":{}}': "LookupError: no price",
    }


def test_a_message_that_is_too_old_fails_its_item(shop):
    # Given a message that waits for longer than it may
    shop.tasks.import_row.options["max_age"] = 1
    batch_id = shop.import_catalog("old")
    time.sleep(0.05)
    # When a worker comes
    batch = shop.finish(batch_id)
    # Then it has failed, and was not run
    assert (batch.failed, shop.ran) == (1, [])
    assert list(reasons(shop.tracker, batch_id).values()) == ["skipped, or too old"]


def test_a_message_that_is_skipped_fails_its_item(shop):
    # Given a middleware that skips messages
    class Skipper(dramatiq.Middleware):
        def before_process_message(self, _broker: object, message: Any) -> None:
            if message.actor_name == "import_row":
                raise SkipMessage

    shop.broker.add_middleware(Skipper())
    batch_id = shop.import_catalog("1")
    assert shop.finish(batch_id).failed == 1
    assert shop.ran == []


def test_an_acknowledgement_that_does_not_get_through_is_told_later(shop):
    # Given a service that is down for a while
    batch_id = shop.import_catalog("1")
    shop.tracker._ack_queue_url = None
    shop.service.on_call = fault = Fault("words.clear", times=15)
    # When a worker handles the message
    batch = shop.finish(batch_id)
    # Then the item is done in the end, and the work was not repeated
    assert (fault.left, batch.failed) == (0, 0)
    assert shop.ran == ["1"]


def test_a_failure_that_does_not_get_through_is_told_again(shop):
    shop.errors = {"1": LookupError("no price")}
    batch_id = shop.import_catalog("1")
    shop.tracker._ack_queue_url = None
    shop.service.on_call = fault = Fault("parts.put_failures", times=30)
    assert shop.finish(batch_id).failed == 1
    assert (fault.left, shop.ran) == (0, ["1"])


def test_an_actor_that_calls_another_marks_its_item_when_it_has_ended(shop):
    # Given a message without an item, and an actor of a batch that calls another actor as a function
    shop.tasks.import_row.send({"sku": "untracked"})
    done: list[int] = []

    @dramatiq.actor(max_retries=0)
    def import_two() -> None:
        shop.tasks.import_row({"sku": "within"})
        done.append(shop.tracker.status(batch.id, exact=True).done_min)
        raise LookupError("after the first")

    with shop.tracker.batch() as batch:
        (item,) = batch.add(1)
    import_two.send_with_options(args=(), item=item)
    # When a worker has handled both
    assert shop.finish(batch.id).failed == 1
    # Then the item is that of the outer actor, which failed, and was not done before
    assert sorted(shop.ran) == ["untracked", "within"]
    assert done == [0]


@pytest.mark.parametrize("pad", ["", "x" * (5 << 20)])
def test_an_item_fails_whatever_its_arguments_are(shop, pad):
    # Given an actor that fails, and arguments that may be too large to be kept
    shop.errors = {"1": LookupError("no such customer")}
    with shop.tracker.batch() as batch:
        (item,) = batch.add(1)
    shop.tasks.import_row.send_with_options(args=({"sku": "1", "pad": pad},), item=item)
    # When a worker has handled it
    assert shop.finish(batch.id).failed == 1
    # Then it has failed, with the number of its attempts, and is sent again if it was kept
    (failure,) = shop.tracker.iter_failures(batch.id)
    assert (failure.attempts, failure.kept) == (1, not pad)
    if not pad:
        shop.errors = {}
        scope: dict[str, Any] = {}
        exec(compile(AGAIN, "again.py", "exec"), scope)
        assert shop.finish(scope["do_again"](batch.id)).failed == 0


def test_a_worker_does_not_start_where_retries_are_not_seen():
    broker = StubBroker(middleware=[Retries(), TrackItems(InMemoryService().tracker)])
    with pytest.raises(MiddlewareError, match="before=Retries"):
        dramatiq.Worker(broker).start()
