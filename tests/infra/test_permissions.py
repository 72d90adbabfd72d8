"""All permissions of all functions, written out: one more or one less is a mistake."""

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fanin as package
from fanin.adapters.dynamodb.batches import DynamoBatches
from fanin.adapters.dynamodb.connection import Written
from fanin.adapters.dynamodb.parts import DynamoParts
from fanin.app.ports.batches import Activity, Completion, Telling
from fanin.app.ports.parts import FailureRow, ResultRow, RetryRow
from fanin.domain.batch import LIVE, Batch, Cause, State, Trouble
from fanin_cdk import table_access
from fanin_cdk.table_access import BEGIN, PROGRESS
from tests.infra import grants
from tests.infra.iam.conditions import as_list

PACKAGE = Path(package.__file__).parent

TRACES = {"xray:PutTraceSegments", "xray:PutTelemetryRecords"}


def test_every_role_may_do_what_is_written_and_nothing_else():
    assert grants.current() == grants.FILE.read_text(), "python -m tests.infra.grants renews it"


def test_functions_may_write_traces_only_if_the_settings_ask_for_them(frugal):
    fanin = frugal
    for function in fanin.stack.tracker.functions.values():
        everywhere = {
            action
            for statement in fanin.statements(function.function.role)
            if statement["Resource"] == "*"
            for action in as_list(statement["Action"])
        }
        assert everywhere >= TRACES
        assert fanin.properties(function.function)["TracingConfig"] == {"Mode": "Active"}


def test_a_role_belongs_to_one_function_and_has_no_managed_policy(fanin, tracker):
    roles = [
        fanin.properties(function.function)["Role"]["Fn::GetAtt"][0]
        for function in tracker.functions.values()
    ]
    assert len(set(roles)) == len(roles)
    for role in fanin.of_type("AWS::IAM::Role").values():
        assert not role.keys() & {"ManagedPolicyArns", "Policies"}


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
    store.end(
        1, State.COMPLETE, now=1, sources=LIVE, partial=True, quiet=Batch(1, b"", 1, 1, 1, 1, 1), done=done
    )
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
