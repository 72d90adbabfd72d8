"""The operation of AWS that a request on the wire calls, and its parameters as boto3 takes them.

The recorder loads this file by its path in the emulator's own Python, so it imports only what that has.
"""

import json
import re
from typing import Any, NamedTuple
from urllib.parse import unquote


class UnknownRequest(ValueError):
    """A request of an operation that is not written down here."""


class Wire(NamedTuple):
    """A request on the wire.

    Attributes:
        method: of HTTP.
        path: with its query.
        target: header ``X-Amz-Target``.
        body: as it was sent.
    """

    method: str
    path: str
    target: str
    body: bytes


TARGETS = {
    "DynamoDB_20120810": "dynamodb",
    "AmazonSQS": "sqs",
    "AWSEvents": "events",
    "AWSStepFunctions": "stepfunctions",
    "secretsmanager": "secretsmanager",
    "GraniteServiceVersion20100801": "cloudwatch",
}
REST = (
    ("scheduler", "POST", r"/schedules/(?P<Name>[^/?]+)$", "CreateSchedule"),
    ("scheduler", "PUT", r"/schedules/(?P<Name>[^/?]+)$", "UpdateSchedule"),
    ("scheduler", "DELETE", r"/schedules/(?P<Name>[^/?]+)$", "DeleteSchedule"),
    ("lambda", "GET", r"/2015-03-31/event-source-mappings/?$", "ListEventSourceMappings"),
    (
        "lambda",
        "POST",
        r"/[\d-]+/durable-execution-callbacks/[^/]+/succeed$",
        "SendDurableExecutionCallbackSuccess",
    ),
    (
        "lambda",
        "POST",
        r"/[\d-]+/durable-execution-callbacks/[^/]+/fail$",
        "SendDurableExecutionCallbackFailure",
    ),
    (
        "cloudwatch",
        "POST",
        r"/service/GraniteServiceVersion20100801/operation/GetMetricData$",
        "GetMetricData",
    ),
    ("s3", "POST", r"/(?P<Bucket>[^/?]+)/?$", "DeleteObjects"),
    ("s3", "PUT", r"/(?P<Bucket>[^/?]+)/(?P<Key>.+)$", "PutObject"),
    ("s3", "GET", r"/(?P<Bucket>[^/?]+)/(?P<Key>.+)$", "GetObject"),
    ("s3", "HEAD", r"/(?P<Bucket>[^/?]+)/(?P<Key>.+)$", "HeadObject"),
    ("s3", "DELETE", r"/(?P<Bucket>[^/?]+)/(?P<Key>.+)$", "DeleteObject"),
)


def of_wire(wire: Wire) -> tuple[str, str, dict[str, Any]]:
    """Service, operation and parameters of a request.

    Raises:
        UnknownRequest: it is of no operation that is known here.
    """
    if wire.target:
        prefix, _, operation = wire.target.rpartition(".")
        if prefix in TARGETS:
            return TARGETS[prefix], operation, json.loads(wire.body)
        raise UnknownRequest(wire.target)
    path, _, query = wire.path.partition("?")
    for service, method, form, operation in REST:
        if method == wire.method and (match := re.match(form, path)):
            given = {name: unquote(value) for name, value in match.groupdict().items()}
            if service == "scheduler":
                group = re.search(r"groupName=([^&]+)", query)
                given |= json.loads(wire.body or b"{}") | ({"GroupName": unquote(group[1])} if group else {})
            if operation == "DeleteObjects":
                given["Keys"] = re.findall(r"<Key>([^<]+)</Key>", wire.body.decode())
            return service, operation, given
    if wire.method == "POST" and b"Action=GetMetricData" in wire.body:
        return "cloudwatch", "GetMetricData", {}
    raise UnknownRequest(f"{wire.method} {wire.path}")
