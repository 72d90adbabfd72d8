"""What Lambda and Scheduler do in the name of a role, read from the template; it is not seen on the wire.

The Lambda Developer Guide lists the actions of event source mappings ("Using Lambda with Amazon SQS", "… with
DynamoDB"). Destinations take a message, and the runtime writes logs and traces.
"""

from collections.abc import Iterator

from tests.infra.iam.recorded import Question
from tests.infra.iam.templates import HASH, Templates

QUEUE = ("sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
STREAM = ("dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator")
LOGS = ("logs:CreateLogStream", "logs:PutLogEvents")
TRACES = ("xray:PutTelemetryRecords", "xray:PutTraceSegments")


def questions(templates: Templates) -> Iterator[Question]:
    """All questions of the services."""
    for _, function in templates.of_type("AWS::Lambda::Function"):
        role = _role(function["Role"])
        log = templates.log_group_arn(function["LoggingConfig"]["LogGroup"])
        yield from (Question(role, action, log, {}) for action in LOGS)
        if function.get("TracingConfig"):
            yield from (Question(role, action, "*", {}) for action in TRACES)
    tags = {
        templates.arn(name): {f"aws:ResourceTag/{tag['Key']}": tag["Value"] for tag in queue.get("Tags", [])}
        for name, queue in templates.of_type("AWS::SQS::Queue")
    }
    for _, mapping in templates.of_type("AWS::Lambda::EventSourceMapping"):
        role, source = templates.role_of(mapping["FunctionName"]), mapping["EventSourceArn"]
        if ":dynamodb:" in source:
            yield from (Question(role, action, source, {}) for action in STREAM)
            yield Question(role, "dynamodb:ListStreams", "*", {})
            dead = mapping["DestinationConfig"]["OnFailure"]["Destination"]
            yield Question(role, "sqs:SendMessage", dead, {})
        else:
            yield from (Question(role, action, source, tags[source]) for action in QUEUE)
    for _, invoked in templates.of_type("AWS::Lambda::EventInvokeConfig"):
        dead = invoked["DestinationConfig"]["OnFailure"]["Destination"]
        yield Question(templates.role_of(invoked["FunctionName"]), "sqs:SendMessage", dead, {})


def _role(arn: str) -> str:
    return HASH.sub("", arn.rpartition("/")[2])
