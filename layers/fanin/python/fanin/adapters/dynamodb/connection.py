"""The DynamoDB client of all stores, and the few ways in which they call it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from botocore.exceptions import (
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ProxyConnectionError,
)

from fanin.adapters.aws import client_factory, error_code, translated
from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb.rows import Item
from fanin.adapters.forks import Threads
from fanin.errors import FaninError, ServiceUnavailable, Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


_A = TypeVar("_A")
_B = TypeVar("_B")
_Requests: TypeAlias = Mapping[str, Any]
"""Requests of a batch call, by table."""
_Size: TypeAlias = Callable[[_Requests], int]

_IDLE_ROUNDS: Final = 4
"""Rounds of throttled calls in which none went through, before the others are answered for."""


class Parallel(Threads):
    """Makes several calls at a time.

    Args:
        threads: how many calls may run at a time.
        backoff: waits between the rounds of calls that were throttled, and tells the time.
        time_left: seconds in which ``attempt`` may begin calls.
        patience: seconds for which ``attempt`` goes on when nothing goes through; a job has more of it than a
            function. With any, calls without an answer are made again, too.
        before: makes what the calls share, before threads can race for it.
    """

    def __init__(
        self,
        threads: int,
        backoff: Backoff,
        time_left: Callable[[], float],
        *,
        patience: float = 0,
        before: Callable[[], object],
    ) -> None:
        super().__init__(threads, "dynamodb", before)
        self._backoff = backoff
        self._time_left = time_left
        self._patience = patience
        self._again = (Throttled, ServiceUnavailable) if patience else (Throttled,)

    def attempt(self, call: Callable[[_A], _B], arguments: Sequence[_A]) -> list[_B | FaninError]:
        """Call for every argument, in parallel; only calls that are throttled are made again.

        Calls are made until all went through, until nothing went through for some rounds and as long as the
        patience lasts, or until the time is up: then no call is begun any more.

        Returns:
            One answer for each, in order; ``Throttled`` or ``ServiceUnavailable`` in the place of a call that
            did not go through.
        """
        answers: dict[int, _B | FaninError] = {}
        waiting: Sequence[int] = range(len(arguments))
        idle, progress_at = 0, self._backoff.clock()
        while waiting:
            found = self.map(lambda index: self._begin(call, arguments[index]), waiting)
            answers.update(zip(waiting, found, strict=True))
            again = [index for index in waiting if isinstance(answers[index], self._again)]
            if len(again) < len(waiting):
                idle, progress_at = 0, self._backoff.clock()
            else:
                idle += 1
            patient = idle < _IDLE_ROUNDS or self._backoff.clock() - progress_at < self._patience
            if not again or not patient or self._time_left() <= 0:
                break
            waiting = again
            self._backoff.wait(idle)
        return [answers[index] for index in range(len(arguments))]

    def _begin(self, call: Callable[[_A], _B], argument: _A) -> _B | FaninError:
        if self._time_left() <= 0:
            return Throttled("the time for this call is up; repeat it with what is left", retry_after=1)
        try:
            return call(argument)
        except (Throttled, ServiceUnavailable) as error:
            return error


_MOST_READ: Final = 100  # keys in a BatchGetItem
_MOST_WRITTEN: Final = 25  # rows in a BatchWriteItem
_NOT_SENT: Final = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError)
STALE: Final = 0.5
"""Seconds without a request after which connections are not used for what must not be repeated."""
_ATTEMPTS: Final = 3
"""How often botocore sends a request. Throttled writes are repeated here, together with the others."""
_CONDITION: Final = "ConditionalCheckFailed"
_CONFLICT: Final = "TransactionConflict"
_BUSY: Final = frozenset({f"{_CONFLICT}Exception"})
_THROTTLED: Final = frozenset({"ProvisionedThroughputExceededException", "ThrottlingException"})
_TRY_AGAIN: Final = {_CONFLICT, "ThrottlingError", "ProvisionedThroughputExceeded"}


class Written(NamedTuple):
    """What a conditional write did.

    Attributes:
        done: whether the condition held.
        item: the attributes after the write, or before it if the condition failed; None if there is no row.
    """

    done: bool
    item: Item | None


class Connection:
    """Calls DynamoDB as the service requires: in chunks, with repeats and waits.

    A write that meets a transaction on its row, and rows that a batch call left unprocessed, are retried with
    jitter; neither has changed anything, so that is safe. Only rounds that bring nothing count as tries: of a
    large read DynamoDB answers 16 MB at a time. botocore itself may repeat a call whose answer was lost: a
    clear that did take place then reports its bits as cleared before. Writes that must not be repeated go
    through ``update_once``.

    Args:
        client: makes the client, when first used.
        once: makes a client that sends every request only once; None uses ``client``.
        threads: how many calls may run at a time.
        backoff: waits between tries.
        patience: seconds for which reads, ``put`` and ``parallel.attempt`` go on when nothing goes through; 0
            gives up at once, or after some rounds.
        time_left: seconds in which ``parallel.attempt`` may begin calls; by default there is no limit.
        time_for_requests: seconds in which any request may begin, which follows from those calls; afterwards
            it raises ``Throttled``. By default there is no limit.

    Attributes:
        parallel: makes several calls at a time.
    """

    def __init__(
        self,
        client: Callable[[], DynamoDBClient] | None = None,
        *,
        once: Callable[[], DynamoDBClient] | None = None,
        threads: int = 16,
        backoff: Backoff | None = None,
        patience: float = 0,
        time_left: Callable[[], float] = lambda: math.inf,
        time_for_requests: Callable[[], float] | None = None,
    ) -> None:
        made = partial(client_factory, "dynamodb", connections=threads, time_left=time_for_requests)
        self._make_client = translated()(client or made(attempts=_ATTEMPTS))
        self._make_once = translated()(once or client or made(attempts=1))
        self._once_used = 0.0
        self._backoff = backoff or Backoff()
        self._patience = patience
        self.parallel = Parallel(
            threads, self._backoff, time_left, patience=patience, before=lambda: self.client
        )

    @cached_property
    def client(self) -> DynamoDBClient:
        """The client."""
        return self._make_client()

    @cached_property
    def once(self) -> DynamoDBClient:
        """The client that sends every request only once."""
        return self._make_once()

    def update(self, request: Mapping[str, Any]) -> Written:
        """Write one row, if its condition holds.

        Args:
            request: of UpdateItem or, with an ``Item``, of PutItem.

        Raises:
            Throttled: also if transactions kept the row locked during all tries.
        """
        call = self.client.put_item if "Item" in request else self.client.update_item
        return self._write(call, request, again=_BUSY)

    def update_once(self, request: Mapping[str, Any]) -> Written:
        """Write one row by an update whose condition would hold again, so that it must not be repeated.

        No connection is used for it that has been idle: Lambda purges those of a process that it froze, and
        the loss of such a request looks like that of its answer.

        Raises:
            ServiceUnavailable: the answer was lost, so the row may have been written.
            Throttled: it was not written in any try, or no connection was made.
        """
        if not 0 <= time.time() - self._once_used <= STALE:
            self.once.close()  # of its connections; the next request makes new ones
        try:
            return self._write(self.once.update_item, request, again=_BUSY | _THROTTLED)
        except ServiceUnavailable as error:
            if isinstance(error.__cause__, _NOT_SENT):
                raise Throttled(f"nothing was sent: {error}", retry_after=1) from error
            raise
        finally:
            self._once_used = time.time()

    def _write(
        self, call: Callable[..., Any], request: Mapping[str, Any], *, again: Collection[str]
    ) -> Written:
        with translated():
            for _ in self._backoff:
                try:
                    answer = call(**request, ReturnValuesOnConditionCheckFailure="ALL_OLD")
                except ClientError as error:
                    if error_code(error) == f"{_CONDITION}Exception":
                        return Written(done=False, item=cast("Item", error.response).get("Item"))
                    if error_code(error) not in again:
                        raise
                else:
                    return Written(done=True, item=answer.get("Attributes"))
        raise _busy("UpdateItem")

    def delete(self, request: Mapping[str, Any]) -> bool:
        """Delete one row, if its condition holds; else False."""
        return self._write(self.client.delete_item, request, again=_BUSY).done

    def transact(self, writes: Sequence[Mapping[str, Any]]) -> list[Item | None] | None:
        """Write several rows together if all their conditions hold, else none.

        Returns:
            None if they were written. Else, for each write: the row that failed the condition, empty if the
            row does not exist, or None if the condition held.

        Raises:
            Throttled: other transactions kept a row locked during all tries.
        """
        with translated():
            for _ in self._backoff:
                try:
                    self.client.transact_write_items(TransactItems=cast("Any", writes))
                except ClientError as error:
                    reasons = cast("Item", error.response).get("CancellationReasons", [])
                    codes = {reason.get("Code") for reason in reasons}
                    if _CONDITION in codes:
                        return [r.get("Item", {}) if r.get("Code") == _CONDITION else None for r in reasons]
                    if not codes & _TRY_AGAIN:
                        raise
                else:
                    return None
        raise _busy("TransactWriteItems")

    def read(self, table: str, keys: Sequence[Item], attributes: Sequence[str] = ()) -> list[Item]:
        """Read rows by key, strongly consistent, in any order; missing rows are left out.

        Args:
            table: its name.
            keys: without repeats.
            attributes: names to read, none of them a reserved word; empty for all.
        """
        projection = {"ProjectionExpression": ", ".join(attributes)} if attributes else {}

        def chunk(start: int) -> list[Item]:
            some = {"Keys": keys[start : start + _MOST_READ], "ConsistentRead": True, **projection}
            call, size = self.client.batch_get_item, lambda wanted: len(wanted[table]["Keys"])
            answers = self._finish("BatchGetItem", {table: some}, call, "UnprocessedKeys", size)
            return [item for answer in answers for item in answer["Responses"].get(table, [])]

        starts = range(0, len(keys), _MOST_READ)
        return [item for items in self.parallel.map(chunk, starts) for item in items]

    def put(self, table: str, items: Iterable[Item]) -> None:
        """Put rows unconditionally; each key may occur once."""
        requests = [{"PutRequest": {"Item": item}} for item in items]

        def chunk(start: int) -> None:
            some = {table: requests[start : start + _MOST_WRITTEN]}
            call, size = self.client.batch_write_item, lambda waiting: len(waiting[table])
            self._finish("BatchWriteItem", some, call, "UnprocessedItems", size)

        self.parallel.map(chunk, range(0, len(requests), _MOST_WRITTEN))

    def _finish(
        self, name: str, requests: _Requests, call: Callable[..., Any], left_in: str, size: _Size
    ) -> list[Any]:
        """Repeat a call until it leaves nothing unprocessed; give up when rounds bring nothing.

        Args:
            name: of the call.
            requests: all that there is to do.
            call: does some of it.
            left_in: where its answer has the requests that are left.
            size: how much there is in requests.

        Returns:
            All answers.

        Raises:
            Throttled: it brought nothing in as many rounds in a row as the backoff has tries.
        """
        idle, answers = 0, [self._patiently(call, RequestItems=requests)]
        while left := answers[-1].get(left_in):
            idle = idle + 1 if size(left) >= size(requests) else 0
            if idle == self._backoff.tries:
                raise _busy(name)
            requests = left
            self._backoff.wait(idle)
            answers.append(self._patiently(call, RequestItems=requests))
        return answers

    def query(self, request: Mapping[str, Any]) -> tuple[list[Item], Item | None]:
        """Read one page of a query.

        Returns:
            The rows, and the key after which the next page starts; None at the end.
        """
        answer = self._patiently(self.client.query, **request)
        return cast("list[Item]", answer["Items"]), answer.get("LastEvaluatedKey")

    def count_page(self, request: Mapping[str, Any]) -> tuple[int, bool]:
        """How many rows a query finds in its first megabyte, and whether there is more.

        The request selects their count.
        """
        answer = self._patiently(self.client.query, **request)
        return int(answer["Count"]), "LastEvaluatedKey" in answer

    def scan(self, request: Mapping[str, Any]) -> tuple[list[Item], Item | None]:
        """Read one page of a scan; as ``query``."""
        answer = self._patiently(self.client.scan, **request)
        return cast("list[Item]", answer["Items"]), answer.get("LastEvaluatedKey")

    def _patiently(self, call: Callable[..., Any], **request: Any) -> Any:
        """Make a call that changes nothing, or the same again; a busy table stops none who has patience."""

        def once() -> Any:
            with translated():
                return call(**request)

        return self._backoff.patiently(once, self._patience)


def _busy(call: str) -> Throttled:
    return Throttled(f"DynamoDB did not complete {call} in all tries; try again later", retry_after=1)
