"""SQS events as Lambda makes them, and a batch to consume."""

import pytest

ARN = "arn:aws:sqs:us-east-1:123456789012:work"


def record(n, item=None, *, body=None, group=None, arn=ARN):
    """A record of an SQS event, as Lambda writes it."""
    attributes = {"ApproximateReceiveCount": "1"} | ({"MessageGroupId": group} if group else {})
    carried = {"fanin-item": {"stringValue": item, "dataType": "String"}} if item else {}
    return {
        "messageId": f"m{n}",
        "receiptHandle": f"r{n}",
        "body": str(n) if body is None else body,
        "attributes": attributes,
        "messageAttributes": carried,
        "eventSource": "aws:sqs",
        "eventSourceARN": arn,
        "awsRegion": "us-east-1",
    }


def event(items, **more):
    return {"Records": [record(n, item, **more) for n, item in enumerate(items)]}


def failed(response):
    return [failure["itemIdentifier"] for failure in response["batchItemFailures"]]


@pytest.fixture
def batch(tracker):
    return tracker.attach(tracker.open(user_key="k").batch_id)
