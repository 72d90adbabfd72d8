"""Patience with DynamoDB: repeats of what certainly changed nothing, and of nothing else."""

import math
import sys
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec
from threading import Barrier
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fanin.adapters.backoff import Backoff
from fanin.adapters.dynamodb import connection as module
from fanin.adapters.dynamodb.connection import Connection, Parallel
from fanin.errors import ServiceUnavailable, Throttled

UPDATE: dict[str, Any] = {"TableName": "t", "Key": {"k": {"S": "a"}}}
WRITES: list[dict[str, Any]] = [{"Put": {"TableName": "t", "Item": {"k": {"S": "a"}}}}]
KEYS = [{"k": {"S": str(n)}} for n in range(3)]
ROWS = [{"k": {"S": str(n)}, "v": {"N": "1"}} for n in range(3)]


def canceled(stubber: Stubber, *codes: str, item: dict[str, Any] | None = None) -> None:
    reasons = [{"Code": code} | ({"Item": item} if item and code != "None" else {}) for code in codes]
    stubber.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": reasons},
    )


def test_a_write_that_meets_a_transaction_is_tried_again(connection, aws, waits):
    aws.add_client_error("update_item", "TransactionConflictException")
    aws.add_response("update_item", {"Attributes": {"v": {"N": "1"}}})

    assert connection.update(UPDATE) == (True, {"v": {"N": "1"}})
    assert waits == [0.02]


def test_a_row_that_stays_busy_is_throttled(connection, aws):
    for _ in range(3):
        aws.add_client_error("update_item", "TransactionConflictException")

    with pytest.raises(Throttled, match="UpdateItem"):
        connection.update(UPDATE)
    aws.assert_no_pending_responses()


def test_throttling_is_not_tried_again_here(connection, aws, waits):
    aws.add_client_error("update_item", "ThrottlingException")

    with pytest.raises(Throttled):
        connection.update(UPDATE)
    assert waits == []


def test_a_refused_write_tells_the_row_as_it_was(connection, aws):
    aws.add_client_error(
        "update_item", "ConditionalCheckFailedException", modeled_fields={"Item": {"v": {"N": "3"}}}
    )
    aws.add_client_error("update_item", "ConditionalCheckFailedException")

    assert connection.update(UPDATE) == (False, {"v": {"N": "3"}})
    assert connection.update(UPDATE) == (False, None)


def test_a_bad_request_of_our_own_is_not_hidden(connection, aws):
    aws.add_client_error("update_item", "ValidationException")

    with pytest.raises(ClientError, match="ValidationException"):
        connection.update(UPDATE)


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_meets_another_is_tried_again(connection, aws, code):
    canceled(aws, "None", code)
    aws.add_response("transact_write_items", {})

    assert connection.transact(WRITES) is None
    aws.assert_no_pending_responses()


def test_a_transaction_that_stays_in_conflict_is_throttled(connection, aws):
    for _ in range(3):
        canceled(aws, "TransactionConflict", "None")

    with pytest.raises(Throttled, match="TransactWriteItems"):
        connection.transact(WRITES)


def test_a_refused_transaction_tells_which_conditions_failed(connection, aws):
    canceled(aws, "ConditionalCheckFailed", "None", item={"n": {"N": "4"}})
    canceled(aws, "None", "ConditionalCheckFailed")
    canceled(aws, "ConditionalCheckFailed", "TransactionConflict", item={"n": {"N": "4"}})

    assert connection.transact(WRITES) == [{"n": {"N": "4"}}, None]
    assert connection.transact(WRITES) == [None, {}]
    assert connection.transact(WRITES) == [{"n": {"N": "4"}}, None]


def test_a_transaction_refused_for_another_reason_is_not_hidden(connection, aws):
    canceled(aws, "ValidationError", "None")

    with pytest.raises(ClientError):
        connection.transact(WRITES)


def test_unread_keys_are_asked_for_again(connection, aws, waits):
    def ask(keys: list[Any]) -> dict[str, Any]:
        return {"RequestItems": {"t": {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "k, v"}}}

    rest = ask(KEYS[1:])["RequestItems"]
    aws.add_response("batch_get_item", {"Responses": {"t": ROWS[:1]}, "UnprocessedKeys": rest}, ask(KEYS))
    aws.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": rest}, ask(KEYS[1:]))
    aws.add_response("batch_get_item", {"Responses": {"t": ROWS[1:]}, "UnprocessedKeys": {}}, ask(KEYS[1:]))

    assert connection.read("t", KEYS, ["k", "v"]) == ROWS
    assert waits == [0.02, 0.04]


def test_unwritten_rows_are_written_again(connection, aws, waits):
    def ask(rows: list[Any]) -> dict[str, Any]:
        return {"RequestItems": {"t": [{"PutRequest": {"Item": row}} for row in rows]}}

    rest = ask(ROWS[2:])["RequestItems"]
    aws.add_response("batch_write_item", {"UnprocessedItems": rest}, ask(ROWS))
    aws.add_response("batch_write_item", {"UnprocessedItems": {}}, ask(ROWS[2:]))

    connection.put("t", ROWS)

    aws.assert_no_pending_responses()
    assert waits == [0.02]


def test_a_read_that_comes_in_many_parts_is_never_given_up(connection, aws, waits):
    """Of rows of 400 KB DynamoDB answers 16 MB at a time, and its answers are not failures."""
    keys = [{"k": {"S": str(n)}} for n in range(8)]
    for n in range(8):
        rest = {"t": {"Keys": keys[n + 1 :]}} if n < 7 else {}
        aws.add_response("batch_get_item", {"Responses": {"t": [keys[n]]}, "UnprocessedKeys": rest})

    assert connection.read("t", keys) == keys
    assert waits == [0.02] * 7


PAGE: dict[str, Any] = {"Items": ROWS, "LastEvaluatedKey": KEYS[2]}
REPEATABLE: dict[str, tuple[dict[str, Any], Callable[[Connection], object]]] = {
    "batch_get_item": ({"Responses": {"t": ROWS}}, lambda connection: connection.read("t", KEYS)),
    "batch_write_item": ({"UnprocessedItems": {}}, lambda connection: connection.put("t", ROWS)),
    "query": (PAGE, lambda connection: connection.query({"TableName": "t"})),
    "scan": (PAGE, lambda connection: connection.scan({"TableName": "t"})),
}


@pytest.mark.parametrize("patience", [0, 60])
@pytest.mark.parametrize("operation", REPEATABLE)
def test_a_connection_with_patience_repeats_a_call_that_is_refused(client, aws, operation, patience):
    # Given a table that refuses the first call as a whole
    answer, call = REPEATABLE[operation]
    aws.add_client_error(operation, "ThrottlingException")
    aws.add_response(operation, answer)
    connection = Connection(lambda: client, backoff=Backoff(sleep=lambda _: None), patience=patience)
    # Then those without patience are told so, and others get the answer to the second
    if not patience:
        with pytest.raises(Throttled):
            call(connection)
    found = call(connection)
    if answer is PAGE:
        assert found == (ROWS, KEYS[2])


@pytest.mark.parametrize("call", ["read", "put"])
def test_what_stays_unprocessed_is_throttled(connection, aws, call):
    for _ in range(3):
        keys = {"t": {"Keys": KEYS[:1]}}
        rows = {"t": [{"PutRequest": {"Item": ROWS[0]}}]}
        if call == "read":
            aws.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": keys})
        else:
            aws.add_response("batch_write_item", {"UnprocessedItems": rows})

    with pytest.raises(Throttled):
        getattr(connection, call)("t", ROWS[:1])


@pytest.mark.parametrize(
    "code", ["ThrottlingException", "ProvisionedThroughputExceededException", "TransactionConflictException"]
)
def test_what_is_sent_once_is_tried_again_if_it_certainly_wrote_nothing(client, aws, waits, code):
    backoff = Backoff(tries=2, sleep=waits.append, fraction=lambda: 1.0)
    connection = Connection(never, once=lambda: client, backoff=backoff)
    aws.add_client_error("update_item", code)
    aws.add_response("update_item", {})

    assert connection.update_once(UPDATE) == (True, None)
    assert waits == [0.02]


def test_what_is_sent_once_is_given_up_when_nobody_knows_whether_it_was_written(connection, aws, waits):
    aws.add_client_error("update_item", "InternalServerError", http_status_code=500)

    with pytest.raises(ServiceUnavailable):
        connection.update_once(UPDATE)
    assert waits == []


@pytest.mark.parametrize(("rows", "reads", "writes"), [(25, [25], [25]), (101, [100, 1], [25] * 4 + [1])])
def test_no_request_names_more_rows_than_dynamodb_takes(aws, client, asked, *, rows, reads, writes):
    connection = Connection(lambda: client, threads=1)
    keys = [{"k": {"S": str(n)}} for n in range(rows)]
    for _ in reads:
        aws.add_response("batch_get_item", {"Responses": {}})
    for _ in writes:
        aws.add_response("batch_write_item", {})

    connection.read("t", keys)
    connection.put("t", keys)

    tables = [request["RequestItems"]["t"] for request in asked]
    assert [len(table["Keys"]) for table in tables[: len(reads)]] == reads
    assert [len(table) for table in tables[len(reads) :]] == writes


@pytest.mark.parametrize(
    "call",
    [
        lambda connection: connection.update(UPDATE),
        lambda connection: connection.update_once(UPDATE),
        lambda connection: connection.delete(UPDATE),
        lambda connection: connection.transact(WRITES),
        lambda connection: connection.read("t", KEYS),
        lambda connection: connection.put("t", ROWS),
        lambda connection: connection.query({"TableName": "t"}),
    ],
    ids=["update", "update_once", "delete", "transact", "read", "put", "query"],
)
def test_no_request_begins_when_the_time_is_up(call):
    """An ack of a thousand batches also touches and ends them, one after another."""
    connection = Connection(time_for_requests=lambda: 0.0)
    for client in (connection.client, connection.once):
        client.meta.events.register_last("before-send", lambda **_: pytest.fail("a request was sent"))

    with pytest.raises(Throttled, match="the time for this call is up"):
        call(connection)


def test_each_of_the_sixteen_calls_that_go_at_a_time_has_a_socket():
    connection = Connection()

    sockets = [client.meta.config.max_pool_connections for client in (connection.client, connection.once)]
    assert sockets == [16, 16]


@pytest.mark.parametrize("name", ["connection", "metering"])
def test_the_types_of_boto3_are_not_needed_to_run(monkeypatch, name):
    """They are installed where the code is checked, and in no function."""
    monkeypatch.setitem(sys.modules, "mypy_boto3_dynamodb", None)
    spec = find_spec(f"fanin.adapters.dynamodb.{name}")
    assert spec is not None
    assert spec.loader is not None

    spec.loader.exec_module(module_from_spec(spec))


never: Callable[[], Any] = lambda: pytest.fail("a client was made")  # noqa: E731


class TestOnce:
    """What must not be repeated goes out on connections that cannot have gone stale."""

    @pytest.fixture
    def closed(self) -> list[float]:
        return []

    @pytest.fixture
    def connection(self, closed: list[float], monkeypatch: pytest.MonkeyPatch) -> Connection:
        def update_item(**_: Any) -> dict[str, Any]:
            return {"Attributes": {}}

        self.now = 1_000.0
        monkeypatch.setattr(module.time, "time", lambda: self.now)
        client = SimpleNamespace(close=lambda: closed.append(self.now), update_item=update_item)
        return Connection(lambda: cast("Any", client))

    @pytest.mark.parametrize(("idle", "closes"), [(0.0, 1), (0.5, 1), (0.6, 2), (-1.0, 2)])
    def test_connections_that_were_idle_are_closed_first(self, connection, closed, idle, closes):
        connection.update_once({})
        self.now += idle
        connection.update_once({})
        assert len(closed) == closes

    def test_what_never_left_may_be_repeated(self, monkeypatch):
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
        with pytest.raises(Throttled, match="nothing was sent"):
            Connection().update_once({"TableName": "t", "Key": {}, "UpdateExpression": "ADD a :b"})


@pytest.mark.parametrize("calls", [2, 4])
def test_several_calls_go_at_once(connection, calls):
    barrier = Barrier(calls)

    def call(number: int) -> int:
        barrier.wait(timeout=60)  # passes only if all are under way together
        return number * 2

    assert connection.parallel.map(call, range(calls)) == [number * 2 for number in range(calls)]


def test_what_the_calls_share_is_made_before_any_of_them_begins():
    order: list[str] = []
    parallel = Parallel(2, Backoff(), lambda: math.inf, before=lambda: order.append("shared"))

    parallel.map(order.append, ["call", "call"])

    assert order == ["shared", "call", "call"]


def test_one_call_needs_neither_thread_nor_client():
    connection = Connection(never)

    assert connection.parallel.map(abs, [-3]) == [3]
    assert connection.parallel.map(abs, []) == []


def test_an_error_of_one_call_reaches_the_caller(connection):
    def call(number: int) -> int:
        if number == 2:
            raise Throttled("slow")
        return number

    with pytest.raises(Throttled):
        connection.parallel.map(call, [1, 2, 3])


def test_the_client_is_made_once_and_late(client):
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return client

    connection = Connection(make)
    assert made == []

    assert connection.client is connection.client
    assert made == [1]


class TestAttempt:
    def test_repeats_the_calls_that_are_throttled_and_no_others(self, connection, waits):
        calls: list[int] = []

        def call(number: int) -> int:
            calls.append(number)
            if number % 2 and calls.count(number) < 3:
                raise Throttled("slow")
            return number * 2

        assert connection.parallel.attempt(call, range(6)) == [0, 2, 4, 6, 8, 10]
        assert sorted(calls) == [0, 1, 1, 1, 2, 3, 3, 3, 4, 5, 5, 5]
        assert waits == [0.02, 0.04]

    def test_goes_on_for_as_long_as_something_goes_through(self, connection):
        gone: list[int] = []

        def call(number: int) -> int:
            if number > len(gone):
                raise Throttled("slow")
            gone.append(number)
            return number

        connection._threads = 1
        assert connection.parallel.attempt(call, range(9, -1, -1)) == list(range(9, -1, -1))

    def test_gives_up_when_nothing_goes_through(self, connection, waits):
        def call(number: int) -> int:
            if number:
                raise Throttled("slow")
            return number

        zero, one = connection.parallel.attempt(call, [0, 1])
        assert (zero, type(one)) == (0, Throttled)
        assert len(waits) == 4

    def test_an_unknown_end_is_answered_and_not_repeated(self, connection):
        calls: list[int] = []

        def call(number: int) -> int:
            calls.append(number)
            raise ServiceUnavailable("no answer")

        (answer,) = connection.parallel.attempt(call, [7])
        assert (type(answer), calls) == (ServiceUnavailable, [7])

    def test_begins_nothing_when_the_time_is_up(self):
        left, busy = iter([1.0, 1.0]), Backoff(sleep=lambda _: pytest.fail("it waits for nothing"))
        connection = Connection(never, threads=1, backoff=busy, time_left=lambda: next(left, 0.0))
        connection.__dict__["client"] = None
        answers = connection.parallel.attempt(abs, [-1, -2, -3, -4])
        assert answers[:2] == [1, 2]
        late = [answer for answer in answers[2:] if isinstance(answer, Throttled)]
        assert [(str(answer), answer.retry_after) for answer in late] == [
            ("the time for this call is up; repeat it with what is left", 1)
        ] * 2

    def test_a_defect_is_raised(self, connection):
        with pytest.raises(ZeroDivisionError):
            connection.parallel.attempt(lambda number: 1 // number, [1, 0])


class TestPatience:
    """A job goes on for minutes while nothing goes through."""

    def test_goes_on_until_it_lasts_no_longer(self):
        # Given a store that takes nothing, and two minutes of patience
        time = [0.0]
        parallel = patient(120, time)

        (answer,) = parallel.attempt(refuse, [1])

        assert isinstance(answer, Throttled)
        assert 120 <= time[0] < 145

    def test_begins_anew_with_each_call_that_goes_through(self):
        # Given a store that takes one call in each hundred seconds
        time, gone = [0.0], list[int]()

        def call(number: int) -> int:
            if time[0] < 100 * (len(gone) + 1):
                raise Throttled("slow")
            gone.append(number)
            return number

        assert patient(120, time).attempt(call, range(5)) == list(range(5))
        assert time[0] > 400

    def test_makes_calls_without_an_answer_again(self):
        answers = [ServiceUnavailable("no answer"), Throttled("slow"), ServiceUnavailable("no answer")]

        def call(number: int) -> int:
            if answers:
                raise answers.pop()
            return number

        assert patient(120, [0.0]).attempt(call, [7]) == [7]


def refuse(number: int) -> int:
    raise Throttled(f"slow: {number}")


def patient(seconds: float, time: list[float]) -> Parallel:
    """Calls one after the other, in a time that passes only while they wait."""

    def sleep(waited: float) -> None:
        time[0] += waited

    backoff = Backoff(tries=40, cap=20, sleep=sleep, fraction=lambda: 1, clock=lambda: time[0])
    return Parallel(1, backoff, lambda: math.inf, patience=seconds, before=lambda: None)
