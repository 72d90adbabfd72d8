"""Patience with DynamoDB: repeats of what certainly changed nothing, and of nothing else."""

from collections.abc import Callable
from threading import Barrier
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from fanin.adapters.aws import Backoff
from fanin.adapters.dynamodb import Connection
from fanin.errors import Throttled

UPDATE: dict[str, Any] = {"TableName": "t", "Key": {"k": {"S": "a"}}}
WRITES: list[dict[str, Any]] = [{"Put": {"TableName": "t", "Item": {"k": {"S": "a"}}}}]
KEYS = [{"k": {"S": str(n)}} for n in range(3)]
ROWS = [{"k": {"S": str(n)}, "v": {"N": "1"}} for n in range(3)]


@pytest.fixture
def client() -> Any:
    return boto3.client("dynamodb")


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def connection(client: Any, waits: list[float]) -> Connection:
    return Connection(
        lambda: client, threads=4, backoff=Backoff(tries=3, sleep=waits.append, fraction=lambda: 1.0)
    )


def canceled(stubber: Stubber, *codes: str, item: dict[str, Any] | None = None) -> None:
    reasons = [{"Code": code} | ({"Item": item} if item and code != "None" else {}) for code in codes]
    stubber.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": reasons},
    )


def test_a_write_that_meets_a_transaction_is_tried_again(
    connection: Connection, aws: Stubber, waits: list[float]
) -> None:
    aws.add_client_error("update_item", "TransactionConflictException")
    aws.add_response("update_item", {"Attributes": {"v": {"N": "1"}}})

    assert connection.update(UPDATE) == (True, {"v": {"N": "1"}})
    assert waits == [0.02]


def test_a_row_that_stays_busy_is_throttled(connection: Connection, aws: Stubber) -> None:
    for _ in range(3):
        aws.add_client_error("update_item", "TransactionConflictException")

    with pytest.raises(Throttled, match="UpdateItem"):
        connection.update(UPDATE)
    aws.assert_no_pending_responses()


def test_throttling_is_not_tried_again_here(connection: Connection, aws: Stubber, waits: list[float]) -> None:
    aws.add_client_error("update_item", "ThrottlingException")

    with pytest.raises(Throttled):
        connection.update(UPDATE)
    assert waits == []


def test_a_refused_write_tells_the_row_as_it_was(connection: Connection, aws: Stubber) -> None:
    aws.add_client_error(
        "update_item", "ConditionalCheckFailedException", modeled_fields={"Item": {"v": {"N": "3"}}}
    )
    aws.add_client_error("update_item", "ConditionalCheckFailedException")

    assert connection.update(UPDATE) == (False, {"v": {"N": "3"}})
    assert connection.update(UPDATE) == (False, None)


def test_a_bad_request_of_our_own_is_not_hidden(connection: Connection, aws: Stubber) -> None:
    aws.add_client_error("update_item", "ValidationException")

    with pytest.raises(ClientError, match="ValidationException"):
        connection.update(UPDATE)


@pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_that_meets_another_is_tried_again(
    connection: Connection, aws: Stubber, code: str
) -> None:
    canceled(aws, "None", code)
    aws.add_response("transact_write_items", {})

    assert connection.transact(WRITES) is None
    aws.assert_no_pending_responses()


def test_a_transaction_that_stays_in_conflict_is_throttled(connection: Connection, aws: Stubber) -> None:
    for _ in range(3):
        canceled(aws, "TransactionConflict", "None")

    with pytest.raises(Throttled, match="TransactWriteItems"):
        connection.transact(WRITES)


def test_a_refused_transaction_tells_which_conditions_failed(connection: Connection, aws: Stubber) -> None:
    canceled(aws, "ConditionalCheckFailed", "None", item={"n": {"N": "4"}})
    canceled(aws, "None", "ConditionalCheckFailed")
    canceled(aws, "ConditionalCheckFailed", "TransactionConflict", item={"n": {"N": "4"}})

    assert connection.transact(WRITES) == [{"n": {"N": "4"}}, None]
    assert connection.transact(WRITES) == [None, {}]
    assert connection.transact(WRITES) == [{"n": {"N": "4"}}, None]


def test_a_transaction_refused_for_another_reason_is_not_hidden(connection: Connection, aws: Stubber) -> None:
    canceled(aws, "ValidationError", "None")

    with pytest.raises(ClientError):
        connection.transact(WRITES)


def test_unread_keys_are_asked_for_again(connection: Connection, aws: Stubber, waits: list[float]) -> None:
    def ask(keys: list[Any]) -> dict[str, Any]:
        return {"RequestItems": {"t": {"Keys": keys, "ConsistentRead": True, "ProjectionExpression": "k, v"}}}

    rest = ask(KEYS[1:])["RequestItems"]
    aws.add_response("batch_get_item", {"Responses": {"t": ROWS[:1]}, "UnprocessedKeys": rest}, ask(KEYS))
    aws.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": rest}, ask(KEYS[1:]))
    aws.add_response("batch_get_item", {"Responses": {"t": ROWS[1:]}, "UnprocessedKeys": {}}, ask(KEYS[1:]))

    assert connection.read("t", KEYS, ["k", "v"]) == ROWS
    assert waits == [0.02, 0.04]


def test_unwritten_rows_are_written_again(connection: Connection, aws: Stubber, waits: list[float]) -> None:
    def ask(rows: list[Any]) -> dict[str, Any]:
        return {"RequestItems": {"t": [{"PutRequest": {"Item": row}} for row in rows]}}

    rest = ask(ROWS[2:])["RequestItems"]
    aws.add_response("batch_write_item", {"UnprocessedItems": rest}, ask(ROWS))
    aws.add_response("batch_write_item", {"UnprocessedItems": {}}, ask(ROWS[2:]))

    connection.put("t", ROWS)

    aws.assert_no_pending_responses()
    assert waits == [0.02]


@pytest.mark.parametrize("call", ["read", "put"])
def test_what_stays_unprocessed_is_throttled(connection: Connection, aws: Stubber, call: str) -> None:
    for _ in range(3):
        keys = {"t": {"Keys": KEYS[:1]}}
        rows = {"t": [{"PutRequest": {"Item": ROWS[0]}}]}
        if call == "read":
            aws.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": keys})
        else:
            aws.add_response("batch_write_item", {"UnprocessedItems": rows})

    with pytest.raises(Throttled):
        getattr(connection, call)("t", ROWS[:1])


def test_several_calls_go_at_once(connection: Connection) -> None:
    barrier = Barrier(4)

    def call(number: int) -> int:
        barrier.wait(timeout=10)  # passes only if all four are under way together
        return number * 2

    assert connection.map(call, [1, 2, 3, 4]) == [2, 4, 6, 8]


def test_one_call_needs_neither_thread_nor_client() -> None:
    connection = Connection(never)

    assert connection.map(abs, [-3]) == [3]
    assert connection.map(abs, []) == []


def test_an_error_of_one_call_reaches_the_caller(connection: Connection) -> None:
    def call(number: int) -> int:
        if number == 2:
            raise Throttled("slow")
        return number

    with pytest.raises(Throttled):
        connection.map(call, [1, 2, 3])


def test_the_client_is_made_once_and_late(client: Any) -> None:
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return client

    connection = Connection(make)
    assert made == []

    assert connection.client is connection.client
    assert made == [1]


never: Callable[[], Any] = lambda: pytest.fail("a client was made")  # noqa: E731
