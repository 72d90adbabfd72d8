"""What the roles of the functions may do, tried with their own credentials.

The emulator verifies signatures and enforces the policies of the template, so in all tests of this folder the
functions have their own roles. ``tests/infra`` has what each may do; two are here, to see it enforced.
"""

from __future__ import annotations

from collections.abc import Callable

import boto3
import pytest
from botocore.exceptions import ClientError

from fanin import names

NOTHING = {"ConditionExpression": "attribute_exists(nothing)"}  # the call changes nothing, even if allowed
KEYS = {
    "batches": {"batch_id": {"N": "0"}},
    "words": {"word_id": {"S": "0/0/0"}},
    "parts": {"batch_id": {"N": "0"}, "part": {"S": "none"}},
}

READS = {"batches BatchGetItem", "words BatchGetItem"}
SETTLES = READS | {"batches UpdateItem", "words UpdateItem"}
NOTES = {f"parts {action}" for action in ("BatchGetItem", "Query", "UpdateItem")}
# On AWS only queues with the tag ``fanin:channel``, see ``tests/infra``; the emulator does not know tags.
CHANNELS = {
    f"{queue} SendMessage" for queue in ("work", "acks", "parked", "notifier retries", "settler retries")
}
ALLOWED = {
    "acks": SETTLES | NOTES | {"acks SendMessage"},
    "api": SETTLES
    | CHANNELS
    | {"batches PutItem", "by_shelf Query", "by_user_key Query", "bus PutEvents", "DeleteSchedule"}
    | {f"parts {action}" for action in ("BatchGetItem", "BatchWriteItem", "PutItem", "Query", "UpdateItem")},
}


@pytest.fixture
def queues(stack, deployment) -> dict[str, str]:
    """Name → URL of the queues that roles may or may not send to."""
    return {
        "work": stack.work_queue_url,
        "acks": stack.ack_queue_url,
        "parked": deployment.queue("Parked"),
        "notifier retries": deployment.queue("NotifierRetriesQueue"),
        "settler retries": deployment.queue("SettlerRetriesQueue"),
    }


@pytest.fixture
def calls(stack, queues) -> Callable[[boto3.Session], dict[str, Callable[[], object]]]:
    """Name → call that a role may or may not make; none of them changes anything that matters."""

    def of(session: boto3.Session) -> dict[str, Callable[[], object]]:
        def client(service: str):
            return session.client(service, endpoint_url=stack.endpoint_url)

        dynamodb, sqs = client("dynamodb"), client("sqs")
        tables = {"batches": stack.batches_table, "words": stack.words_table, "parts": stack.parts_table}
        some = {"TableName": stack.batches_table, "ExpressionAttributeValues": {":v": {"S": "none#0"}}}
        made: dict[str, Callable[[], object]] = {
            "by_shelf Query": lambda: dynamodb.query(
                **some, IndexName=names.INDEX_BY_STATE_SHARD, KeyConditionExpression="shelf = :v"
            ),
            "by_user_key Query": lambda: dynamodb.query(
                **some, IndexName=names.INDEX_BY_USER_KEY, KeyConditionExpression="user_shard = :v"
            ),
            "bus PutEvents": lambda: client("events").put_events(
                Entries=[{"EventBusName": stack.bus, "Source": "test", "DetailType": "test", "Detail": "{}"}]
            ),
            "DeleteSchedule": lambda: client("scheduler").delete_schedule(
                Name="fanin-0", GroupName=stack.schedule_group
            ),
            "ListSchedules": lambda: client("scheduler").list_schedules(),
            "ListUsers": lambda: client("iam").list_users(),
            "ListFunctions": lambda: client("lambda").list_functions(),
            "DeleteTable": lambda: dynamodb.delete_table(TableName="none"),
        }
        for name, table in tables.items():
            made |= _calls_of_table(dynamodb, name, table)
        for name, url in queues.items():
            # No message is empty, so that none is sent.
            made[f"{name} SendMessage"] = lambda url=url: sqs.send_message(QueueUrl=url, MessageBody="")
            made[f"{name} PurgeQueue"] = lambda url=url: sqs.purge_queue(QueueUrl=url)
        return made

    return of


def _calls_of_table(dynamodb, name: str, table: str) -> dict[str, Callable[[], object]]:
    key, of = KEYS[name], {"TableName": table}
    ((hash_key, value), *_) = key.items()
    return {
        f"{name} GetItem": lambda: dynamodb.get_item(**of, Key=key),
        f"{name} BatchGetItem": lambda: dynamodb.batch_get_item(RequestItems={table: {"Keys": [key]}}),
        f"{name} PutItem": lambda: dynamodb.put_item(**of, **NOTHING, Item=key),
        f"{name} UpdateItem": lambda: dynamodb.update_item(
            **of, **NOTHING, Key=key, UpdateExpression="REMOVE nothing"
        ),
        f"{name} DeleteItem": lambda: dynamodb.delete_item(**of, **NOTHING, Key=key),
        f"{name} BatchWriteItem": lambda: dynamodb.batch_write_item(
            RequestItems={table: [{"DeleteRequest": {"Key": key}}]}
        ),
        f"{name} Query": lambda: dynamodb.query(
            **of,
            KeyConditionExpression=f"{hash_key} = :v",
            ExpressionAttributeValues={":v": value},
        ),
        f"{name} Scan": lambda: dynamodb.scan(**of),
    }


def allowed(call: Callable[[], object]) -> bool:
    try:
        call()
    except ClientError as error:
        return not error.response["Error"]["Code"].startswith("AccessDenied")
    return True


@pytest.mark.parametrize("function", ALLOWED)
def test_a_role_may_do_what_its_function_needs_and_no_more(deployment, calls, function):
    made = calls(deployment.session_of(function))
    assert {name for name, call in made.items() if allowed(call)} == ALLOWED[function]


def test_all_of_these_calls_are_sound_and_harmless(stack, deployment, queues, calls):
    """Root may make all calls; a denial for another role is therefore not an error of the call."""
    # Given all calls but those that empty a queue
    root = boto3.Session(stack.access_key_id, stack.secret_access_key, region_name=stack.region)
    harmless = {name: call for name, call in calls(root).items() if not name.endswith("PurgeQueue")}
    before = {name: deployment.messages(url) for name, url in queues.items()}

    # When root makes them, Then all are allowed
    assert {name for name, call in harmless.items() if allowed(call)} == set(harmless)

    # And no message of these calls is left for later tests
    assert {name: deployment.messages(url) for name, url in queues.items()} == before


def test_everybody_who_is_not_allowed_is_refused_by_the_tables_too(stack, caller):
    """A user who may call the API may not use the tables directly."""
    dynamodb = caller.client("dynamodb", endpoint_url=stack.endpoint_url)
    with pytest.raises(ClientError, match="AccessDenied"):
        dynamodb.get_item(TableName=stack.batches_table, Key=KEYS["batches"])
