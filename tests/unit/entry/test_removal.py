"""The custom resource that cleans up behind a stack: when it does, and that CloudFormation hears of it."""

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from fanin.adapters.leftovers import AwsLeftovers
from fanin.entry.removal import follow_stack
from fanin.errors import Throttled

PROPERTIES = {
    "Buckets": ["claims"],
    "Bus": "fanin",
    "QueuePrefix": "fanin-buffer-",
    "DeadLetters": "arn",
    "Tables": ["words"],
    "Unlimited": ["MaxWriteRequestUnits"],
}


class Recorded(AwsLeftovers):
    """Leftovers that tell what they were asked to delete."""

    def __init__(self, *, deleting: bool, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, ...]] = []
        self._deleting, self._error = deleting, error

    def is_being_deleted(self, stack: str) -> bool:
        assert stack == "stack-id"
        return self._deleting

    def stop_application(self, application: str) -> bool:
        return bool(self._ask("application", application))

    def empty(self, bucket: str) -> int:
        return self._ask("bucket", bucket)

    def delete_queues(self, prefix: str, dead_letters: str) -> int:
        return self._ask("queues", prefix, dead_letters)

    def delete_rules(self, bus: str) -> int:
        return self._ask("rules", bus)

    def lift_limits(self, table: str, fields: Sequence[str]) -> int:
        return self._ask("limits", table, *fields)

    def _ask(self, *asked: str) -> int:
        if self._error:
            raise self._error
        self.asked.append(asked)
        return 1


def request(kind: str, properties: dict[str, Any] | None = None, **more: str) -> dict[str, Any]:
    return {
        "RequestType": kind,
        "StackId": "stack-id",
        "RequestId": "request-id",
        "LogicalResourceId": "Leftovers",
        "ResponseURL": "https://answers",
        "ResourceProperties": PROPERTIES if properties is None else properties,
        **more,
    }


def followed(event: dict[str, Any], leftovers: Recorded) -> dict[str, str]:
    answers: list[tuple[str, bytes]] = []
    follow_stack(event, leftovers, lambda url, body: answers.append((url, body)))
    ((url, body),) = answers
    assert url == event["ResponseURL"]
    told: dict[str, str] = json.loads(body)
    return told


def test_a_stack_that_is_deleted_takes_everything_along():
    leftovers = Recorded(deleting=True)

    told = followed(request("Delete", PhysicalResourceId="mine"), leftovers)

    assert leftovers.asked == [("rules", "fanin"), ("queues", "fanin-buffer-", "arn"), ("bucket", "claims")]
    assert told == {
        "StackId": "stack-id",
        "RequestId": "request-id",
        "LogicalResourceId": "Leftovers",
        "PhysicalResourceId": "mine",
        "Status": "SUCCESS",
    }


@pytest.mark.parametrize(("kind", "deleting"), [("Create", False), ("Delete", False), ("Create", True)])
def test_nothing_is_deleted_while_the_stack_stays(kind, deleting):
    """An update that sets ``removal`` back to ``retain`` deletes the resource, and must not delete data."""
    leftovers = Recorded(deleting=deleting)
    assert followed(request(kind), leftovers)["Status"] == "SUCCESS"
    assert leftovers.asked == []


def test_a_limit_that_an_update_takes_back_is_lifted_and_nothing_is_deleted():
    leftovers = Recorded(deleting=False)
    assert followed(request("Update"), leftovers)["Status"] == "SUCCESS"
    assert leftovers.asked == [("limits", "words", "MaxWriteRequestUnits")]


def test_the_resource_keeps_its_id_when_it_is_updated():
    """With another id CloudFormation would delete the one before."""
    ids = [followed(request("Create"), Recorded(deleting=False))["PhysicalResourceId"]]
    update = request("Update", {"Buckets": []}, PhysicalResourceId=ids[0])
    ids.append(followed(update, Recorded(deleting=False))["PhysicalResourceId"])
    assert ids == ["Leftovers"] * 2


def test_what_could_not_be_deleted_is_told():
    told = followed(
        request("Delete"), Recorded(deleting=True, error=Throttled("the time is up " + "x" * 5_000))
    )
    assert told["Status"] == "FAILED"
    assert told["Reason"].startswith("Throttled: the time is up")
    assert len(told["Reason"]) == 1_000


def test_the_answer_is_put_without_a_type_as_the_signature_of_the_url_wants():
    # Given CloudFormation's end of the line
    got: list[tuple[str | None, bytes]] = []

    class Answers(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            got.append((self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.handle_request).start()
        follow_stack(
            request("Create", ResponseURL=f"http://127.0.0.1:{server.server_port}/x"),
            Recorded(deleting=False),
        )
    ((kind, body),) = got
    assert kind == ""
    assert json.loads(body)["Status"] == "SUCCESS"


def test_an_application_is_stopped_before_its_bucket_is_emptied():
    leftovers = Recorded(deleting=True)
    followed(request("Delete", {"Application": "00f1", "Buckets": ["jobs"]}), leftovers)
    assert leftovers.asked == [("application", "00f1"), ("bucket", "jobs")]
