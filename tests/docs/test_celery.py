"""docs/how-to/celery.md runs on a worker of Celery with its broker in memory."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from types import ModuleType
from typing import Any

import pytest
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Ignore
from celery.signals import setup_logging
from celery.worker.state import revoked

from fanin import Tracker
from fanin.contrib import celery as contrib
from fanin.errors import ServiceUnavailable
from fanin.testing import Fault, InMemoryService
from fanin.types import Batch, State
from tests.docs import pages
from tests.docs.kept import reasons

WORKER, PRODUCER, AGAIN = pages.code("how-to/celery.md")


@pytest.fixture(scope="module")
def app() -> Iterator[ModuleType]:
    """The page's worker as the module ``tasks``. Celery registers tasks for a whole process, so once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROKER_URL", "memory://")
        patch.setattr(Tracker, "from_env", Tracker.in_memory)
        module, shop = ModuleType("tasks"), ModuleType("shop")
        vars(shop)["store"] = None
        patch.setitem(sys.modules, "tasks", module)
        patch.setitem(sys.modules, "shop", shop)
        exec(compile(WORKER, "tasks.py", "exec"), vars(module))
        module.app.conf.update(broker_transport_options={"polling_interval": 0.02})
        module.import_row.default_retry_delay = 0
        patch.setattr(contrib._later, "retry_backoff", False)
        patch.setattr(contrib._later, "default_retry_delay", 0)
        # Where somebody listens to this signal, Celery leaves the logging of the process as it is.
        setup_logging.connect(as_it_is)
        try:
            with start_worker(module.app, perform_ping_check=False, shutdown_timeout=30):
                yield module
        finally:
            setup_logging.disconnect(as_it_is)


def as_it_is(**_: object) -> None:
    """Set no level and no handler: other tests of this process read logs."""


class Shop:
    """A service, the page's modules on it, and what the worker did."""

    def __init__(self, tasks: ModuleType) -> None:
        self.service = InMemoryService()
        self.tracker = self.service.tracker
        self.tasks = tasks
        self.ran: list[str] = []
        self.does({})
        vars(tasks)["tracker"] = self.tracker
        contrib._from_env.cache_clear()
        Tracker.from_env = staticmethod(lambda: self.tracker)

    def does(self, what: dict[str, Exception | threading.Event]) -> None:
        """What the task raises or waits for, by the row's number; other rows are stored."""

        def store(row: dict[str, str]) -> None:
            self.ran.append(row["sku"])
            match what.get(row["sku"]):
                case Exception() as error:
                    raise error
                case threading.Event() as event:
                    event.wait(30)

        vars(self.tasks)["store"] = store

    def page(self, block: str, name: str, *arguments: Any) -> int:
        """Call a function of a block of the page."""
        scope: dict[str, Any] = {}
        exec(compile(block, "page.py", "exec"), scope)
        made: int = scope[name](*arguments)
        return made

    def import_catalog(self, *skus: str) -> int:
        return self.page(PRODUCER, "import_catalog", "shoes", [{"sku": sku} for sku in skus])

    def wait(self, until: Callable[[], bool]) -> None:
        """Let the worker work until something is so."""
        end = time.monotonic() + 60
        while not until():
            assert time.monotonic() < end, self.ran
            time.sleep(0.01)

    def finish(self, batch_id: int) -> Batch:
        """Let the worker work until it has told that the batch is complete."""
        self.wait(lambda: self.tracker.status(batch_id).batch.state is State.COMPLETE)
        self.wait(lambda: bool(self.service.events_of(batch_id)))
        return self.tracker.status(batch_id).batch


@pytest.fixture
def shop(app: ModuleType) -> Iterator[Shop]:
    yield Shop(app)
    revoked.clear()


def test_a_batch_is_complete_when_its_last_task_is(shop):
    # Given tasks that were sent twice, since their producer died before it closed the batch
    skus = [str(n) for n in range(20)]
    shop.service.on_call = Fault("batches.close")
    with pytest.raises(ServiceUnavailable):
        shop.import_catalog(*skus)
    batch_id = shop.import_catalog(*skus)
    # When the worker has run them
    shop.finish(batch_id)
    # Then each counts once, and one event tells of the end
    (event,) = shop.service.events_of(batch_id)
    assert (event.detail["items"], event.detail["failed"]) == (20, 0)
    assert set(shop.ran) == set(skus)
    # And a third call of the producer sends nothing
    shop.wait(lambda: len(shop.ran) == 2 * len(skus))
    assert shop.import_catalog(*skus) == batch_id
    shop.tasks.import_row.delay({"sku": "last"})
    shop.wait(lambda: shop.ran[-1] == "last")
    assert len(shop.ran) == 2 * len(skus) + 1


def test_a_retry_is_an_attempt_and_the_last_one_fails_the_item(shop):
    # Given a task that is retried in vain, one that is not retried, and one that succeeds
    shop.does({"down": ConnectionError("no route"), "bad": ValueError("no price")})
    accesses: list[str] = []
    shop.service.on_call = lambda access, moment: accesses.append(f"{moment} {access}")
    batch_id = shop.import_catalog("down", "bad", "good")
    # When the worker runs them
    batch = shop.finish(batch_id)
    # Then each attempt was made, and each but the last was noted
    assert sorted(shop.ran) == ["bad", *["down"] * 4, "good"]
    assert accesses.count("before parts.put_retries") == 3
    # And the two have failed for good, and what they were called with is kept
    assert (batch.items, batch.failed) == (3, 2)
    assert reasons(shop.tracker, batch_id) == {
        '{"args": [{"sku": "down"}], "kwargs": {}}': "ConnectionError: no route",
        '{"args": [{"sku": "bad"}], "kwargs": {}}': "ValueError: no price",
    }


def test_failed_items_are_done_again_in_another_batch(shop):
    # Given a batch in which a task has failed
    shop.does({"2": ValueError("no price")})
    batch_id = shop.import_catalog("1", "2", "3")
    shop.finish(batch_id)
    # When the cause is mended, and the failed ones are sent again, twice
    shop.does({})
    again = shop.page(AGAIN, "do_again", batch_id)
    assert shop.page(AGAIN, "do_again", batch_id) == again
    # Then a batch of its own has this item alone
    batch = shop.finish(again)
    assert (batch.items, batch.failed, batch.retry_of) == (1, 0, batch_id)
    assert shop.ran == ["1", "2", "3", "2"]


def test_a_task_that_is_revoked_fails_its_item(shop):
    # Given a worker that is busy, and two tasks, of which one is revoked before the worker gets it
    busy = threading.Event()
    shop.does({"busy": busy})
    shop.tasks.import_row.delay({"sku": "busy"})
    batch_id = shop.import_catalog("wanted", "unwanted")
    revoked.add(f"{shop.tracker.missing(batch_id).ranges[0].group}:1")
    # When the worker comes to them
    busy.set()
    batch = shop.finish(batch_id)
    # Then it has failed, and was not run
    assert shop.ran == ["busy", "wanted"]
    assert batch.failed == 1
    assert list(reasons(shop.tracker, batch_id).values()) == ["revoked"]


def test_an_acknowledgement_that_does_not_get_through_is_told_later(shop):
    # Given a service that is down for a while
    batch_id = shop.import_catalog("1")
    shop.tracker._ack_queue_url = None
    shop.service.on_call = fault = Fault("words.clear", times=15)
    # When the worker runs the task
    shop.finish(batch_id)
    # Then the item is done in the end, and the work was not repeated
    assert fault.left == 0
    assert shop.ran == ["1"]


def test_a_failure_that_does_not_get_through_is_told_again(shop):
    shop.does({"1": ValueError("no price")})
    batch_id = shop.import_catalog("1")
    shop.tracker._ack_queue_url = None
    shop.service.on_call = fault = Fault("parts.put_failures", times=15)
    batch = shop.finish(batch_id)
    assert (batch.failed, fault.left, shop.ran) == (1, 0, ["1"])


def test_a_task_without_an_item_marks_none(shop):
    # Given a task that is sent without an item, and one that does not say what became of it
    shop.does({"ignored": Ignore()})
    shop.tasks.import_row.delay({"sku": "untracked"})
    batch_id = shop.import_catalog("done", "ignored")
    # When the worker has run them
    shop.wait(lambda: len(shop.ran) == 3)
    # Then one item is done, and the other stays pending
    assert sorted(shop.ran) == ["done", "ignored", "untracked"]
    progress = shop.tracker.status(batch_id, exact=True)
    assert (progress.batch.state, progress.done_min) == (State.CLOSED, 1)


def test_a_task_that_calls_itself_marks_its_item_when_it_has_ended(shop):
    # Given a task that calls itself as a function, and then fails
    done: list[int] = []

    def store(row: dict[str, str]) -> None:
        shop.ran.append(row["sku"])
        if row["sku"] == "outer":
            shop.tasks.import_row({"sku": "inner"})
            done.append(shop.tracker.status(batch_id, exact=True).done_min)
            raise LookupError("the disk is full")

    vars(shop.tasks)["store"] = store
    with shop.tracker.batch() as batch:
        (item,) = batch.add(1)
    batch_id = batch.id
    shop.tasks.import_row.apply_async(({"sku": "outer"},), task_id=item)
    # When the worker has run it
    failed = shop.finish(batch_id).failed
    # Then nothing was done before its end
    assert (done, failed, shop.ran) == ([0], 1, ["outer", "inner"])


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), Decimal("1.50"), "x" * (5 << 20)])
def test_an_item_fails_whatever_its_arguments_are(shop, value):
    # Given a task that fails, and arguments that json does not write, or that are too large to be kept
    shop.does({"1": LookupError("no such customer")})
    with shop.tracker.batch() as batch:
        (item,) = batch.add(1)
    shop.tasks.import_row.apply_async(({"sku": "1", "value": value},), task_id=item)
    # When the worker has run it
    assert shop.finish(batch.id).failed == 1
    # Then it has failed, with the number of its attempts, and may be sent again if it was kept
    (failure,) = shop.tracker.iter_failures(batch.id)
    assert failure.attempts == 1
    assert failure.kept == (not isinstance(value, str))
    if failure.kept:
        shop.does({})
        assert shop.finish(shop.page(AGAIN, "do_again", batch.id)).failed == 0
    else:
        assert "its arguments are not kept: the body of a message must be" in failure.reason


def test_a_task_leaves_its_item_to_a_child_batch(shop):
    # Given a task that opens a batch for its item
    children: list[int] = []

    def store(row: dict[str, str]) -> None:
        with shop.tracker.batch(parent_item=shop.tasks.import_row.request.id) as child:
            shop.ran.extend(child.add(1))
        children.append(child.id)

    vars(shop.tasks)["store"] = store
    batch_id = shop.import_catalog("1")
    shop.wait(lambda: bool(children))
    # When its only item is done
    assert shop.tracker.status(batch_id).batch.state is State.CLOSED
    shop.tracker.ack(shop.ran[0])
    # Then the parent is complete
    shop.finish(batch_id)
