"""What the functions must not do, and the few that may do it all the same."""

from tests.infra.iam.policies import Request
from tests.infra.iam.templates import ACCOUNT, REGION

BATCHES, WORDS, PARTS, DIRECTORY = (
    f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/TrackerStorage{name}"
    for name in ("Batches", "Words", "Parts", "Directory")
)
ROUTER = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:TrackerFunctionsRouterFunction"
FOREIGN = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:foreign"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/fanin/fanin-route-orders"
SOMEBODYS_QUEUE = f"arn:aws:sqs:{REGION}:{ACCOUNT}:somebodys"
SCHEDULES = f"arn:aws:iam::{ACCOUNT}:role/TrackerDeadlinesRole"
CLAIMS = "arn:aws:s3:::TrackerScatterClaims"


def update(table: str, *attributes: str, key: str = "1") -> Request:
    context = {
        "dynamodb:LeadingKeys": (key,),
        "dynamodb:Attributes": attributes,
        "dynamodb:ReturnValues": "NONE",
    }
    return Request("dynamodb:UpdateItem", table, context)


def targets(*arns: str, rule: str = RULE) -> Request:
    return Request("events:PutTargets", rule, {"events:TargetArn": arns} if arns else {})


OPENS = {"Api", "Console", "Redriver"}
NOBODY: set[str] = set()
FORBIDDEN: list[tuple[str, Request, set[str]]] = [
    ("delete a batch", Request("dynamodb:DeleteItem", BATCHES), NOBODY),
    ("delete a word", Request("dynamodb:DeleteItem", WORDS), NOBODY),
    ("overwrite a word", Request("dynamodb:PutItem", WORDS), NOBODY),
    ("write words at once, without a condition", Request("dynamodb:BatchWriteItem", WORDS), NOBODY),
    ("write batches at once, without a condition", Request("dynamodb:BatchWriteItem", BATCHES), NOBODY),
    ("overwrite a batch", Request("dynamodb:PutItem", BATCHES), OPENS),
    ("change the salt of a batch", update(BATCHES, "batch_id", "salt"), OPENS),
    ("change the limit of a batch", update(BATCHES, "batch_id", "acked", "limit"), OPENS),
    ("change the parent of a batch", update(BATCHES, "batch_id", "parent_item"), OPENS),
    ("change when a batch is deleted", update(BATCHES, "batch_id", "state", "expires_at"), OPENS),
    ("say how many items a batch has", update(BATCHES, "batch_id", "items"), {*OPENS, "Scatter"}),
    ("delete a part", Request("dynamodb:DeleteItem", PARTS), {"Notifier"}),
    ("overwrite a part", Request("dynamodb:PutItem", PARTS), OPENS),
    ("overwrite a registration", Request("dynamodb:PutItem", DIRECTORY), NOBODY),
    ("delete from the directory", Request("dynamodb:DeleteItem", DIRECTORY), {"Api", "Console", "Notifier"}),
    *(
        (f"scan {table}", Request("dynamodb:Scan", table), NOBODY)
        for table in (BATCHES, WORDS, PARTS, DIRECTORY)
    ),
    *((f"drop {table}", Request("dynamodb:DeleteTable", table), NOBODY) for table in (BATCHES, WORDS, PARTS)),
    ("change the time to live", Request("dynamodb:UpdateTimeToLive", WORDS), NOBODY),
    ("export a table", Request("dynamodb:ExportTableToPointInTime", BATCHES), NOBODY),
    ("read another table", Request("dynamodb:BatchGetItem", WORDS.replace("Words", "Others")), NOBODY),
    ("send to a queue without a tag", Request("sqs:SendMessage", SOMEBODYS_QUEUE), NOBODY),
    (
        "send to a queue with another tag",
        Request("sqs:SendMessage", SOMEBODYS_QUEUE, {"aws:ResourceTag/fanin": "channel"}),
        NOBODY,
    ),
    (
        "send to a queue that is tracked, and no channel",
        Request("sqs:SendMessage", SOMEBODYS_QUEUE, {"aws:ResourceTag/fanin:tracked": "work"}),
        OPENS,
    ),
    (
        "receive from a tracked queue",
        Request("sqs:ReceiveMessage", SOMEBODYS_QUEUE, {"aws:ResourceTag/fanin:tracked": "work"}),
        NOBODY,
    ),
    (
        "take dead letters",
        Request("sqs:ReceiveMessage", SOMEBODYS_QUEUE, {"aws:ResourceTag/fanin:tracked": "dead-letters"}),
        {"DeadLetters"},
    ),
    (
        "take from a channel",
        Request("sqs:ReceiveMessage", SOMEBODYS_QUEUE, {"aws:ResourceTag/fanin:channel": "x"}),
        {"Api", "Console"},
    ),
    (
        "tag somebody's queue",
        Request("sqs:TagQueue", SOMEBODYS_QUEUE, {"aws:RequestTag/fanin:channel": "x"}),
        NOBODY,
    ),
    ("delete somebody's queue", Request("sqs:DeleteQueue", SOMEBODYS_QUEUE), NOBODY),
    (
        "empty a queue",
        Request("sqs:PurgeQueue", SOMEBODYS_QUEUE, {"aws:ResourceTag/fanin:channel": "x"}),
        NOBODY,
    ),
    ("change a queue's policy", Request("sqs:AddPermission", SOMEBODYS_QUEUE), NOBODY),
    ("lead a route elsewhere", targets(FOREIGN), NOBODY),
    ("lead a route to the router and elsewhere", targets(ROUTER, FOREIGN), NOBODY),
    ("put no targets", targets(), NOBODY),
    ("put a target on another bus", targets(ROUTER, rule=RULE.replace("/fanin/", "/foreign/")), NOBODY),
    ("put a target on the default bus", targets(ROUTER, rule=RULE.replace("/fanin/", "/")), NOBODY),
    ("put a target on another rule", targets(ROUTER, rule=RULE.replace("fanin-route-", "")), NOBODY),
    (
        "write to the default bus",
        Request("events:PutEvents", RULE.replace("rule/fanin/fanin-route-orders", "event-bus/default")),
        NOBODY,
    ),
    (
        "schedule in another group",
        Request("scheduler:CreateSchedule", f"arn:aws:scheduler:{REGION}:{ACCOUNT}:schedule/default/x"),
        NOBODY,
    ),
    (
        "pass the role of schedules to Lambda",
        Request("iam:PassRole", SCHEDULES, {"iam:PassedToService": "lambda.amazonaws.com"}),
        NOBODY,
    ),
    ("pass the role of schedules to nobody known", Request("iam:PassRole", SCHEDULES), NOBODY),
    (
        "pass another role",
        Request("iam:PassRole", f"{SCHEDULES}2", {"iam:PassedToService": "scheduler.amazonaws.com"}),
        NOBODY,
    ),
    ("delete what is kept", Request("s3:DeleteObject", f"{CLAIMS}/days-32/1/message"), {"Notifier"}),
    ("list the bucket", Request("s3:ListBucket", CLAIMS), NOBODY),
    ("read another bucket", Request("s3:GetObject", "arn:aws:s3:::TrackerScatterClaims2/x"), NOBODY),
    ("make a bucket public", Request("s3:PutBucketPolicy", CLAIMS), NOBODY),
    (
        "read the secret of webhooks",
        Request(
            "secretsmanager:GetSecretValue",
            f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:TrackerTargetsWebhookSecret-0",
        ),
        {"Targets"},
    ),
    (
        "read another secret",
        Request("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:other-0"),
        NOBODY,
    ),
    ("end a task of Step Functions", Request("states:SendTaskSuccess", "*"), {"Targets"}),
    ("start a state machine", Request("states:StartExecution", "*"), NOBODY),
    (
        "invoke the timer",
        Request("lambda:InvokeFunction", f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:fanin-timer"),
        NOBODY,
    ),
    ("change code", Request("lambda:UpdateFunctionCode", ROUTER), NOBODY),
    ("take a role", Request("sts:AssumeRole", SCHEDULES), NOBODY),
    ("change a policy", Request("iam:PutRolePolicy", SCHEDULES), NOBODY),
]
"""What it is, what IAM is asked, and the functions that may do it all the same."""
