"""Celery: tasks whose ids are item ids mark their items. Needs the extra ``celery``."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from celery import Celery, Task, shared_task
from celery.exceptions import Ignore, Reject, Retry
from celery.signals import task_failure, task_revoked
from celery.worker.request import Request
from kombu import serialization
from kombu.exceptions import EncodeError

from fanin.client.items_in_hand import IN_HAND
from fanin.client.tracker import AckPath, Tracker
from fanin.contrib import items
from fanin.domain.diagnosis import Retry as Attempt
from fanin.domain.failures import KeptMessage, reason_of
from fanin.domain.ids import parse_item
from fanin.domain.marks import Done, Failure
from fanin.errors import FaninError, InvalidItemId
from fanin.wire.marks import MARKS, result_json, size_of

__all__ = ["TrackedTask", "send_again"]

_RUNNING: Final = ContextVar("running", default="")
"""The item whose task runs here; the attributes of Celery's request would travel on with a retry."""
_TOLD: Final = ContextVar("told", default="")
"""The item of which it was told last what became of it."""
_TYPE: Final = "content-type"
_MOST_BYTES: Final = 128 * 1024
"""Of a mark that the broker carries; SQS takes 256 KiB, and Celery's base64 grows."""


class TrackedRequest(Request):
    """A message of a task, shown as ``task.request`` to receivers of ``task_failure`` where no task runs."""

    def on_timeout(self, soft: bool, timeout: float) -> None:
        with _shown(self):
            super().on_timeout(soft, timeout)

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        with _shown(self):
            return super().on_failure(exc_info, send_failed_event, return_ok)


@contextmanager
def _shown(request: TrackedRequest) -> Iterator[None]:
    stack = request.task.request_stack
    stack.push(request._context)  # noqa: SLF001 - Celery hands it to receivers of its signals, too
    try:
        yield
    finally:
        stack.pop()


class TrackedTask(Task):
    """The base of tasks that mark an item, the one whose id is the id of the task.

    ::

        @app.task(base=TrackedTask)
        def import_row(row): ...

        import_row.apply_async((row,), task_id=item)

    The item is done when the task returns, and has failed when the task fails for good; then its arguments
    are kept. A task that opens a child batch for the item leaves the item to that batch. A call within a
    task, which is plain Python, marks nothing, and neither does a task with another id.

    The broker keeps the message until the item is marked. If fanin cannot be reached, a message takes its
    place that only marks the item, and is repeated until it has.

    Attributes:
        tracker: by default the one of the environment, which is shared; a subclass may have its own.
        via: ``"queue"`` marks items through the ack queue, which is cheaper and takes some seconds.
        results: whether what the task returns is the result of its item; None is no result. One that is not
            JSON fails the item.
    """

    abstract = True
    acks_late = True
    reject_on_worker_lost = True
    Request = TrackedRequest
    via: AckPath = "api"
    results: bool = False

    @property
    def tracker(self) -> Tracker:
        return _from_env()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        request = self.request
        item = _item(request)
        if item is None or item == _RUNNING.get():  # a call within the task has a copy of its request
            return super().__call__(*args, **kwargs)
        running = _RUNNING.set(item)
        try:
            with IN_HAND.handling(item) as handling:
                result = super().__call__(*args, **kwargs)
                kept = result if self.results else None
                if kept is not None:
                    result_json(kept)
        except Retry as again:
            self.tracker.note_retries([Attempt(item, request.retries + 1, reason_of(again.exc or again))])
            raise
        except (Ignore, Reject):
            raise
        except Exception as error:
            self._tell(request, self._failure(request, reason_of(error), request.retries + 1))
            raise
        finally:
            _RUNNING.reset(running)
        if not handling.left_to_child:
            self._tell(request, Done(item, result=kept))
        return result

    def _failure(self, request: Any, reason: str, attempts: int) -> Failure:
        failure = Failure(request.id, reason, attempts=attempts)
        called = {"args": request.args, "kwargs": request.kwargs}
        try:
            content_type, _, payload = serialization.dumps(called, serializer=self.serializer)
        except EncodeError as error:
            return items.without_message(failure, reason_of(error))
        raw = payload.encode() if isinstance(payload, str) else payload
        kept = items.kept_call(self.name, raw, {_TYPE: content_type})
        return Failure(request.id, reason, kept, attempts)

    def _tell(self, request: Any, mark: Done | Failure) -> None:
        if items.tell(self.tracker, self.via, mark) is not None:
            self._tell_later(request, mark)
        _TOLD.set(mark.item)

    def _tell_later(self, request: Any, mark: Done | Failure) -> None:
        """Send a message that marks the item, to where the task's own came from."""
        if isinstance(mark, Failure) and mark.message is not None and size_of(mark) > _MOST_BYTES:
            mark = items.without_message(mark, "they are too large for the broker to carry them twice")
        info = request.delivery_info or {}
        route = {name: info[name] for name in ("exchange", "routing_key") if info.get(name) is not None}
        told = self.app.tasks[_later.name]
        told.apply_async((self.name, MARKS.encode([mark])), serializer="json", **route)


@shared_task(
    name="fanin.tell",
    bind=True,
    acks_late=True,
    ignore_result=True,
    autoretry_for=(FaninError,),
    max_retries=None,
    retry_backoff=True,
)
def _later(self: Any, task: str, marks: Any) -> None:
    """Mark an item of which a task could not, until it is marked."""
    of = self.app.tasks[task]
    for mark in MARKS.decode(marks):
        error = items.tell(of.tracker, of.via, mark)
        if error is not None:
            raise error


@task_failure.connect
def _failed(sender: Any, exception: BaseException, **_: Any) -> None:
    """Fail the item of a task that could not do so, such as one whose process was killed."""
    if isinstance(sender, TrackedTask) and sender.request.id != _TOLD.get():
        _give_up(sender, sender.request, reason_of(exception), sender.request.retries + 1)


@task_revoked.connect
def _revoked(sender: Any, request: Any, expired: bool, terminated: bool, **_: Any) -> None:
    if isinstance(sender, TrackedTask):
        reason = "expired" if expired else "terminated" if terminated else "revoked"
        _give_up(sender, request, reason, request.retries + terminated)


def _give_up(task: TrackedTask, request: Any, reason: str, attempts: int) -> None:
    if _item(request) is not None:
        task._tell_later(request, task._failure(request, reason, attempts))  # noqa: SLF001 - of this module


def _item(request: Any) -> str | None:
    """The item that a task is to mark; None if its id is not the id of an item."""
    try:
        parse_item(request.id)
    except InvalidItemId:
        return None
    return str(request.id)


@cache
def _from_env() -> Tracker:
    return Tracker.from_env()


def send_again(app: Celery, batch_id: int, tracker: Tracker | None = None) -> int:
    """Open a batch with the failed items of another, and send their tasks again with the arguments kept.

    A repeat goes on with the same batch, and sends nothing once that is closed. Failures whose arguments
    were not kept are left out.

    Args:
        app: sends the tasks, by its routes.
        batch_id: the batch whose items failed.
        tracker: by default the one of the environment.

    Returns:
        The id of the new batch.

    Raises:
        InvalidRequest: no failed item of the batch has kept its arguments.
    """
    accepted = serialization.prepare_accept_content(app.conf.accept_content)

    def send(item: str, kept: KeptMessage) -> None:
        content_type = items.attribute(kept, _TYPE)
        binary = items.attribute(kept, items.ENCODING) == "base64"
        called: Mapping[str, Any] = serialization.loads(
            items.payload_of(kept), content_type, "binary" if binary else "utf-8", accept=accepted
        )
        app.send_task(items.attribute(kept, items.TASK), called["args"], called["kwargs"], task_id=item)

    return items.call_again(tracker or _from_env(), batch_id, send)
