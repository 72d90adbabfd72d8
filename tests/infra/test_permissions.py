"""All permissions of all functions, written out: one more or one less is a mistake."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fanin as package
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Written
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.app.ports.batches import Activity, Completion, Telling
from fanin.app.ports.parts import FailureRow, ResultRow, RetryRow
from fanin.domain.batch import LIVE, Batch, Cause, State, Trouble
from fanin_cdk import table_access
from fanin_cdk.table_access import BEGIN, PROGRESS

PACKAGE = Path(package.__file__).parent

CONSUME = {
    "sqs:ChangeMessageVisibility",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
}
DESTINATION = {"sqs:SendMessage", "sqs:GetQueueAttributes", "sqs:GetQueueUrl"}
CHANNELS = {"sqs:GetQueueUrl", "sqs:ListQueueTags", "sqs:SendMessage"}
LOOK = {"sqs:GetQueueAttributes"}
TAKE = {"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
RULES = {
    "rules of routes": {"events:DeleteRule", "events:PutRule", "events:RemoveTargets"},
    "rules of routes, to the router": {"events:PutTargets"},
}
STREAM = {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"}


def table(*actions: str) -> set[str]:
    return {f"dynamodb:{action}" for action in actions}


SETTLES = {
    "batches": table("BatchGetItem"),
    "batches, some attributes": table("UpdateItem"),
    "words": table("BatchGetItem", "UpdateItem"),
}
NOTES = {
    "parts": table("BatchGetItem", "Query"),
    "parts, notes": table("UpdateItem"),
    "claims/*": {"s3:PutObject"},
}

PUTS_OFF = {
    "parts": table("BatchGetItem", "Query"),
    "schedules": {"scheduler:CreateSchedule", "scheduler:UpdateSchedule"},
    "schedule role, to scheduler.amazonaws.com": {"iam:PassRole"},
    "scatter jobs": {"sqs:SendMessage"},
}
"""The permissions to postpone the deadline of a scatter."""

ALLOWED: dict[str, dict[str, set[str]]] = {
    "api": {
        "batches": table("BatchGetItem", "PutItem", "UpdateItem"),
        "batches/index/by_shelf": table("Query"),
        "batches/index/by_user_key": table("Query"),
        "batches/index/by_attention": table("Query"),
        "words": table("BatchGetItem", "UpdateItem"),
        "parts": table("BatchGetItem", "BatchWriteItem", "PutItem", "Query", "UpdateItem"),
        "directory": table("BatchGetItem", "DeleteItem", "Query", "UpdateItem"),
        "schedules": {"scheduler:CreateSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule"},
        "schedule role, to scheduler.amazonaws.com": {"iam:PassRole"},
        "bus": {"events:PutEvents"},
        **RULES,
        "tagged queues": CHANNELS | TAKE,
        "tracked queues": LOOK | CHANNELS,
        "queues of buffers": {
            "sqs:CreateQueue",
            "sqs:DeleteQueue",
            "sqs:GetQueueAttributes",
            "sqs:SetQueueAttributes",
            "sqs:TagQueue",
        },
        "scatter jobs": {"sqs:SendMessage"},
        "redrive jobs": {"sqs:SendMessage"},
        "target jobs": {"sqs:SendMessage"},
        "claims/*": {"s3:GetObject", "s3:PutObject"},
    },
    "redriver": {
        "batches": table("BatchGetItem", "PutItem", "UpdateItem"),
        "words": table("BatchGetItem", "UpdateItem"),
        "parts": table("BatchGetItem", "PutItem", "Query", "UpdateItem"),
        "directory": table("BatchGetItem", "UpdateItem"),
        "redrive jobs": CONSUME | {"sqs:SendMessage"},
        "tagged queues": CHANNELS,
        "tracked queues": CHANNELS,
        "claims/*": {"s3:GetObject", "s3:PutObject"},
    },
    "targets": {
        "batches": table("BatchGetItem"),
        "batches, some attributes: its flag": table("UpdateItem"),
        "parts": table("BatchGetItem", "Query", "UpdateItem"),
        "tagged queues": {"sqs:SendMessage"},
        "target jobs": CONSUME,
    },
    "acks": SETTLES
    | NOTES
    | {"ack queue": CONSUME | {"sqs:SendMessage"}, "ack dead letters": {"sqs:SendMessage"}},
    "notifier": SETTLES
    | {
        "parts": table("BatchGetItem", "DeleteItem", "Query"),
        "parts, notes": table("UpdateItem"),
        "claims/*": {"s3:DeleteObject"},
        "directory": table("BatchGetItem", "DeleteItem"),
        "batches stream": STREAM,
        "bus": {"events:PutEvents"},
        "schedules": {"scheduler:DeleteSchedule"},
        "tagged queues": {"sqs:SendMessage"},
        "target jobs": {"sqs:SendMessage"},
        "notifier retries": CONSUME | {"sqs:SendMessage"},
        "notifier dead letters": DESTINATION,
    },
    "settler": SETTLES
    | {
        "words stream": STREAM,
        "settler retries": CONSUME | {"sqs:SendMessage"},
        "settler dead letters": DESTINATION,
    },
    "timer": SETTLES | PUTS_OFF | {"timer dead letters": DESTINATION},
    "scatter": {
        **{place: actions for place, actions in SETTLES.items() if place != "batches, some attributes"},
        "batches, some attributes and the number of items": table("UpdateItem"),
        "parts": table("BatchGetItem", "UpdateItem"),
        "claims/*": {"s3:PutObject"},
        "directory": table("Query"),
        "tagged queues": {"sqs:SendMessage"},
        "schedules": PUTS_OFF["schedules"],
        "schedule role, to scheduler.amazonaws.com": {"iam:PassRole"},
        "scatter jobs": CONSUME | {"sqs:SendMessage"},
    },
    "replies": SETTLES
    | {
        "parts": table("BatchGetItem", "Query", "UpdateItem"),
        "scatter replies": CONSUME,
        "claims/*": {"s3:GetObject", "s3:PutObject"},
    },
    "reaper": {
        **{place: actions for place, actions in SETTLES.items() if place != "batches, some attributes"},
        **PUTS_OFF,
        "batches, some attributes and the mark of a stall": table("UpdateItem"),
        "batches/index/by_shelf": table("Query"),
        "tagged queues": {"sqs:SendMessage"} | LOOK,
        "tracked queues": LOOK,
        "bus": {"events:PutEvents"},
        "reaper dead letters": DESTINATION,
    },
    "dead_letters": SETTLES
    | NOTES
    | {
        "queues for dead letters": CONSUME - {"sqs:ChangeMessageVisibility"},
        "tracked queues": {"sqs:ListDeadLetterSourceQueues", "sqs:ListQueueTags"},
        "buffer dead letters": CONSUME,
        "parked": {"sqs:SendMessage"},
    },
    "directory": {
        "directory": table("BatchGetItem"),
        "directory stream": STREAM,
        "directory retries": CONSUME | {"sqs:SendMessage"},
        "directory dead letters": DESTINATION,
        "bus": {"events:PutEvents"},
        **RULES,
    },
    "registrar": {
        "directory": table("BatchGetItem", "Query", "UpdateItem"),
        "tagged queues": CHANNELS - {"sqs:SendMessage"},
        "parked": {"sqs:SendMessage"},
        "registrar dead letters": DESTINATION,
    },
    "router": {
        "directory": table("BatchGetItem", "Query", "UpdateItem"),
        "tagged queues": {"sqs:SendMessage"},
        "router dead letters": DESTINATION,
    },
}
NAMED = {
    ":schedule/fanin/*": "schedules",
    ":rule/fanin/fanin-route-*": "rules of routes",
    ":fanin-buffer-*": "queues of buffers",
}
"""End of an ARN with a wildcard → what it stands for."""
INSPECT = {"cloudwatch:GetMetricData", "lambda:ListEventSourceMappings"}
EVERYWHERE = {
    "notifier": {"dynamodb:ListStreams"},
    "settler": {"dynamodb:ListStreams"},
    "directory": {"dynamodb:ListStreams"},
    "api": {*INSPECT},
    "reaper": INSPECT,
    "targets": {
        "states:SendTaskFailure",
        "states:SendTaskSuccess",
        "lambda:SendDurableExecutionCallbackFailure",
        "lambda:SendDurableExecutionCallbackSuccess",
    },
}
"""Actions on all resources, since these actions do not take a resource."""
MORE = {
    frozenset(PROGRESS): "",
    frozenset(BEGIN): " and the number of items",
    frozenset({*PROGRESS, "stall_told", "stall_why"}): " and the mark of a stall",
    frozenset({"batch_id", "state", "attention"}): ": its flag",
}
"""Attributes of a batch that a role may write → what they are besides its progress."""
TRACES = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}


@pytest.fixture(scope="module")
def nicknames(fanin, tracker) -> dict[str, str]:
    """The short name of a resource, from its logical id."""
    queues = {
        "ack queue": tracker.acks.queue,
        "ack dead letters": tracker.acks.dead_letters,
        "work dead letters": tracker.work.dead_letters,
        "buffer dead letters": tracker.buffers.dead_letters,
        "parked": tracker.parked,
        "timer dead letters": tracker.timer_dead_letters,
        "reaper dead letters": tracker.reaper_dead_letters,
        "registrar dead letters": tracker.directory.registrar_dead_letters,
        "router dead letters": tracker.directory.router_dead_letters,
        "scatter jobs": tracker.scatter.jobs.queue,
        "scatter replies": tracker.scatter.replies.queue,
        "redrive jobs": tracker.redrives.jobs.queue,
        "target jobs": tracker.targets.jobs.queue,
    }
    for name, retries in tracker.retries.items():
        queues |= {f"{name} retries": retries.queue, f"{name} dead letters": retries.dead_letters}
    others = {
        "bus": tracker.bus,
        "schedule role": tracker.deadlines.role,
        "timer": tracker.functions["timer"].function,
        "router": tracker.functions["router"].function,
        "claims": tracker.scatter.claims,
    }
    known = tracker.storage.tables | queues | others
    return {fanin.id_of(construct): name for name, construct in known.items()}


def place(arn: Any, nicknames: dict[str, str]) -> str:
    """The short name of the resource that an ARN in the template stands for."""
    match arn:
        case "*":
            return "everything"
        case {"Fn::GetAtt": [name, "StreamArn"]}:
            return f"{nicknames[name]} stream"
        case {"Fn::GetAtt": [name, "Arn"]}:
            return nicknames.get(name, name)
        case {"Fn::Join": ["", [{"Fn::GetAtt": [name, "Arn"]}, rest]]}:
            return nicknames[name] + rest
        case {"Fn::Join": ["", [*_, end]]} if end in NAMED:
            return NAMED[end]
    raise AssertionError(arn)


def allowed(statements: list[dict[str, Any]], nicknames: dict[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for statement in statements:
        assert statement["Effect"] == "Allow"
        actions, where = statement["Action"], place(statement["Resource"], nicknames)
        match statement.get("Condition"):
            case None:
                pass
            case {"ForAllValues:StringEquals": {"dynamodb:Attributes": attributes}} if where == "parts":
                assert tuple(attributes) == table_access.NOTES
                where += ", notes"
            case {"ForAllValues:StringEquals": {"dynamodb:Attributes": attributes}}:
                where += ", some attributes" + MORE[frozenset(attributes)]
            case {"StringLike": {"aws:ResourceTag/fanin:channel": "*"}}:
                assert where == "everything"
                where = "tagged queues"
            case {"StringEquals": {"aws:ResourceTag/fanin:tracked": "dead-letters"}}:
                assert where == "everything"
                where = "queues for dead letters"
            case {"StringLike": {"aws:ResourceTag/fanin:tracked": "*"}}:
                assert where == "everything"
                where = "tracked queues"
            case {
                "ForAllValues:ArnEquals": {"events:TargetArn": target},
                "Null": {"events:TargetArn": "false"},
            }:
                where += f", to the {place(target, nicknames)}"
            case {"StringEquals": {"iam:PassedToService": service}}:
                where += f", to {service}"
            case other:
                raise AssertionError(other)
        found.setdefault(where, set()).update([actions] if isinstance(actions, str) else actions)
    return found


def test_there_is_an_expectation_for_every_function(tracker):
    assert set(tracker.functions) == set(ALLOWED)


@pytest.mark.parametrize("name", ALLOWED)
def test_a_function_may_do_what_it_needs_and_nothing_else(fanin, tracker, nicknames, name):
    # Given the policies of the function's role
    function = tracker.functions[name].function
    found = allowed(fanin.statements(function.role), nicknames)
    # When the permissions of every function are left out: its own log
    everywhere = found.pop("everything", set())
    (log,) = [where for where in found if "Logs" in where]
    assert found.pop(log) == {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert log == fanin.properties(function)["LoggingConfig"]["LogGroup"]["Ref"]
    # Then exactly the table above is left
    assert everywhere == EVERYWHERE.get(name, set())
    assert found == ALLOWED[name]


def test_functions_may_write_traces_only_if_the_settings_ask_for_them(frugal):
    fanin = frugal
    for function in fanin.stack.tracker.functions.values():
        everywhere = {
            action
            for statement in fanin.statements(function.function.role)
            if statement["Resource"] == "*"
            for action in (
                [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
            )
        }
        assert everywhere >= TRACES
        assert fanin.properties(function.function)["TracingConfig"] == {"Mode": "Active"}


def test_a_role_belongs_to_one_function_and_has_no_managed_policy(fanin, tracker):
    roles = [
        fanin.properties(function.function)["Role"]["Fn::GetAtt"][0]
        for function in tracker.functions.values()
    ]
    assert len(set(roles)) == len(ALLOWED)
    for role in fanin.of_type("AWS::IAM::Role").values():
        assert not role.keys() & {"ManagedPolicyArns", "Policies"}


def test_schedules_may_call_the_timer_and_report_failures(fanin, tracker, nicknames):
    found = allowed(fanin.statements(tracker.deadlines.role), nicknames)
    assert found == {"timer": {"lambda:InvokeFunction"}, "timer dead letters": {"sqs:SendMessage"}}


def test_only_the_schedules_of_the_group_can_take_the_role(fanin, tracker):
    (trust,) = fanin.properties(tracker.deadlines.role)["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"]["StringEquals"].keys() == {"aws:SourceAccount", "aws:SourceArn"}


def test_the_attributes_an_ack_may_write_are_those_the_code_writes():
    """The emulator does not check attributes of writes; this compares the policy with the code's writes."""
    # Given a store that records its requests
    asked: set[str] = set()

    class Noting:
        def update(self, request: dict[str, Any]) -> Written:
            asked.update(request["Key"], request["ExpressionAttributeNames"].values())
            return Written(done=True, item=None)

        update_once = update

    store = DynamoBatches("batches", "parts", Noting())
    activity = Activity(touched_at=1, due_at=2)
    # When everything is done that acks, timer, reaper, settler and notifier do
    totals = dict.fromkeys(("rows", "bytes", "cents", "pages"), 1)
    done = Completion(failed=1, failed_more=False, totals=totals, totals_exact=True)
    store.end(1, State.COMPLETE, now=1, sources=LIVE, partial=True, touched_at=1, done=done)
    store.touch(1, activity)
    store.count(1, 5, activity=activity, sums=tuple(totals.values()))
    store.postpone(1, deadline=1, until=2, activity=activity)
    store.hint_failures(1, 3)
    store.flag(Batch(1, b"", 1, 1, 1, 1, 1), Trouble.FAILED)
    for field in ("failing_at", "waiting_at", "milestone"):
        store.tell(1, Telling(field, 1, Trouble.FAILING))
    store.end(1, State.CANCELLED, now=1, sources=LIVE, cause=Cause.FAILURES)
    store.close(1, now=1, activity=activity, grown=5)
    # Then the attributes that it named are exactly those that the policy allows
    assert asked == set(PROGRESS)
    # And likewise for the worker of scatters, which also writes the number of recipients
    store.begin(1, 5, now=1, deadline=1, activity=activity)
    assert asked == set(BEGIN)


def test_the_attributes_of_notes_that_a_consumer_may_write_are_those_the_code_writes():
    # Given a store that records its requests
    asked: set[str] = set()

    class Noting:
        class parallel:  # noqa: N801 - an attribute of connections
            @staticmethod
            def map(write: Callable[[Any], None], rows: list[Any]) -> None:
                for row in rows:
                    write(row)

        def update(self, request: dict[str, Any]) -> Written:
            asked.update(request["Key"], request["ExpressionAttributeNames"].values())
            asked.update(re.findall(r"SET (\w+) =", request["UpdateExpression"]))
            return Written(done=False, item={})

    parts = DynamoParts("parts", Noting())
    # When everything is noted that those note who mark items, or try them again
    failure = FailureRow(
        3, "8:g:3", "why", attempts=2, failed_at=1, source="q", kept="row", totals=(("a", 1),)
    )
    for write in (parts.put_failures, parts.update_failures):
        write(8, [failure, FailureRow(4, "8:g:4", "why")], expires_at=9)
    parts.put_messages(8, {3: b"body"}, expires_at=9)
    parts.put_results(8, [ResultRow(3, "8:g:3", b"1"), ResultRow(4, "8:g:4", kept="key")], expires_at=9)
    parts.put_retries(8, [RetryRow(3, 2, "error", "queue", 7)], expires_at=9)
    # Then the policy allows exactly the attributes that it named
    assert asked == set(table_access.NOTES)


def test_no_action_on_a_table_is_granted_that_the_code_never_calls():
    # Given the calls of DynamoDB's client in the package, and those that it makes within a transaction
    calls: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                calls.add("".join(word.title() for word in node.attr.split("_")))
            elif isinstance(node, ast.Constant) and node.value in ("Put", "Update", "Delete"):
                calls.add(f"{node.value}Item")
    # Then each action of each access is one of them
    accesses = [value for value in vars(table_access).values() if isinstance(value, table_access.Access)]
    granted = {
        action
        for access in accesses
        for action in (*access.batches, *access.words, *access.parts, *access.directory)
    }
    assert granted
    assert granted - calls == set()
