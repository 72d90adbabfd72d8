"""What IAM is asked for a call of AWS, as the Service Authorization Reference documents each operation.

The recorder loads this file by its path in the emulator's own Python, so it imports only what that has.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

ANY = "*"
"""The resource of an action that takes none."""
PARTITION_KEYS = ("topic", "word_id", "batch_id")
"""Names of the tables' partition keys; where two of them are in a row, the first is its key."""
WORDS = re.compile(r"[#:]?[A-Za-z_][A-Za-z0-9_.\-]*")
NOT_NAMES = {
    *("set", "remove", "add", "delete", "and", "or", "not", "between", "in", "if_not_exists", "list_append"),
    *("attribute_exists", "attribute_not_exists", "attribute_type", "begins_with", "contains", "size"),
}
EXPRESSIONS = ("ConditionExpression", "FilterExpression", "KeyConditionExpression", "ProjectionExpression")


class UnknownCall(ValueError):
    """A call of an operation whose permissions are not written down here."""


class Asked(NamedTuple):
    """One question to IAM.

    Attributes:
        action: such as ``sqs:SendMessage``.
        resource: ARN, or ``*``.
        context: condition key → value or values.
    """

    action: str
    resource: str
    context: dict[str, Any]


class Place(NamedTuple):
    """Account and region of a call."""

    account: str
    region: str

    def arn(self, service: str, rest: str) -> str:
        return f"arn:aws:{service}:{self.region}:{self.account}:{rest}"


def asked(
    service: str,
    operation: str,
    parameters: Mapping[str, Any],
    place: Place,
    tags: Callable[[str], Mapping[str, str]] = lambda _arn: {},
) -> list[Asked]:
    """The questions of one call; all of them must be allowed.

    Args:
        service: as boto3 names it.
        operation: name of the API operation.
        parameters: as boto3 takes them.
        place: account and region.
        tags: ARN of a queue → its tags at the time of the call.

    Raises:
        UnknownCall: nothing is known of the operation.
    """
    how = SERVICES.get(service)
    if how is None:
        raise UnknownCall(f"{service} {operation}")
    return list(how(operation, parameters, place, tags))


def _dynamodb(operation: str, given: Mapping[str, Any], place: Place, _: Any) -> Iterator[Asked]:
    def table(name: str) -> str:
        return name if name.startswith("arn:") else place.arn("dynamodb", f"table/{name}")

    if operation in ("BatchGetItem", "BatchWriteItem"):
        for name, of in given["RequestItems"].items():
            yield Asked(f"dynamodb:{operation}", table(name), _context_of_batch(operation, of))
    elif operation in ("TransactWriteItems", "TransactGetItems"):
        for entry in given["TransactItems"]:
            ((kind, one),) = entry.items()
            context = {**_context(f"{kind}Item", one), "dynamodb:EnclosingOperation": operation}
            yield Asked(f"dynamodb:{kind}Item", table(one["TableName"]), context)
    elif operation in ("DeleteItem", "GetItem", "PutItem", "Query", "Scan", "UpdateItem"):
        index = f"/index/{given['IndexName']}" if given.get("IndexName") else ""
        yield Asked(f"dynamodb:{operation}", table(given["TableName"]) + index, _context(operation, given))
    elif operation in ("DescribeTable", "DeleteTable"):
        yield Asked(f"dynamodb:{operation}", table(given["TableName"]), {})
    else:
        raise UnknownCall(f"dynamodb {operation}")


def _context_of_batch(operation: str, of: Any) -> dict[str, Any]:
    if operation == "BatchGetItem":
        keys = of["Keys"]
        projected = "ProjectionExpression" in of
        names = set(_names(of)) | {name for key in keys for name in key}
        return {
            "dynamodb:LeadingKeys": _leading(keys),
            "dynamodb:Select": "SPECIFIC_ATTRIBUTES" if projected else "ALL_ATTRIBUTES",
            **({"dynamodb:Attributes": tuple(sorted(names))} if projected else {}),
        }
    rows = [one.get("PutRequest", {}).get("Item") or one["DeleteRequest"]["Key"] for one in of]
    names = {name for row in rows for name in row}
    return {"dynamodb:LeadingKeys": _leading(rows), "dynamodb:Attributes": tuple(sorted(names))}


def _context(operation: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The condition keys of one read or write; ``dynamodb:Attributes`` are all names that it mentions."""
    row = given.get("Key") or given.get("Item") or {}
    names = {*row, *_names(given)}
    context: dict[str, Any] = {}
    if row:
        context["dynamodb:LeadingKeys"] = _leading([row])
    if operation == "Query":
        context["dynamodb:LeadingKeys"] = _leading_of_query(given)
    if operation in ("GetItem", "Query", "Scan"):
        projected = "ProjectionExpression" in given
        default = "SPECIFIC_ATTRIBUTES" if projected else "ALL_ATTRIBUTES"
        context["dynamodb:Select"] = given.get("Select", default)
    elif operation != "ConditionCheckItem":
        context["dynamodb:ReturnValues"] = given.get("ReturnValues", "NONE")
    if names:
        context["dynamodb:Attributes"] = tuple(sorted(names))
    return context


def _names(given: Mapping[str, Any]) -> Iterator[str]:
    aliases = given.get("ExpressionAttributeNames") or {}
    for parameter in (*EXPRESSIONS, "UpdateExpression"):
        for word in WORDS.findall(given.get(parameter) or ""):
            if word.lower() not in NOT_NAMES and not word.startswith(":"):
                name = word.partition(".")[0]
                yield aliases.get(name, name)


def _leading(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(
        sorted({str(*row[name].values()) for row in rows if (name := _partition_key(row)) is not None})
    )


def _partition_key(row: Mapping[str, Any]) -> str | None:
    return next((name for name in PARTITION_KEYS if name in row), None)


def _leading_of_query(given: Mapping[str, Any]) -> tuple[str, ...]:
    match = re.match(r"\(*\s*([#\w]+)\s*=\s*(:\w+)", given["KeyConditionExpression"])
    return tuple(str(one) for one in given["ExpressionAttributeValues"][match[2]].values()) if match else ()


def _sqs(
    operation: str, given: Mapping[str, Any], place: Place, tags: Callable[[str], Mapping[str, str]]
) -> Iterator[Asked]:
    url = given.get("QueueUrl")
    name = urlsplit(url).path.rpartition("/")[2] if url else given.get("QueueName", "")
    arn = place.arn("sqs", name)
    context: dict[str, Any] = {f"aws:ResourceTag/{key}": value for key, value in tags(arn).items()}
    # "The action for a batch is the action for one message": SendMessage allows SendMessageBatch.
    yield Asked(f"sqs:{operation.removesuffix('Batch')}", arn, context)
    if operation == "CreateQueue" and given.get("tags"):
        named = {f"aws:RequestTag/{key}": value for key, value in given["tags"].items()}
        yield Asked("sqs:TagQueue", arn, {**context, **named, "aws:TagKeys": tuple(sorted(given["tags"]))})


def _events(operation: str, given: Mapping[str, Any], place: Place, _: Any) -> Iterator[Asked]:
    def bus(name: str) -> str:
        return name if name.startswith("arn:") else place.arn("events", f"event-bus/{name}")

    if operation == "PutEvents":
        for entry in given["Entries"]:
            context = {"events:source": entry["Source"], "events:detail-type": entry["DetailType"]}
            yield Asked("events:PutEvents", bus(entry.get("EventBusName") or "default"), context)
    elif operation == "TestEventPattern":
        yield Asked("events:TestEventPattern", ANY, {})
    else:
        on = given.get("EventBusName") or "default"
        rule = given.get("Rule") or given["Name"]
        arn = place.arn("events", f"rule/{rule}" if on == "default" else f"rule/{on}/{rule}")
        targets = tuple(sorted({target["Arn"] for target in given.get("Targets", ())}))
        yield Asked(f"events:{operation}", arn, {"events:TargetArn": targets} if targets else {})


def _scheduler(operation: str, given: Mapping[str, Any], place: Place, _: Any) -> Iterator[Asked]:
    arn = place.arn("scheduler", f"schedule/{given.get('GroupName') or 'default'}/{given.get('Name', '*')}")
    yield Asked(f"scheduler:{operation}", arn, {})
    if operation in ("CreateSchedule", "UpdateSchedule"):
        to = {"iam:PassedToService": "scheduler.amazonaws.com"}
        yield Asked("iam:PassRole", given["Target"]["RoleArn"], to)


def _s3(operation: str, given: Mapping[str, Any], _place: Place, __: Any) -> Iterator[Asked]:
    actions = {"HeadObject": "GetObject", "ListObjectsV2": "ListBucket"}
    key = f"/{given['Key']}" if given.get("Key") else ""
    if operation == "DeleteObjects":
        for one in given["Keys"]:
            yield Asked("s3:DeleteObject", f"arn:aws:s3:::{given['Bucket']}/{one}", {})
        return
    yield Asked(f"s3:{actions.get(operation, operation)}", f"arn:aws:s3:::{given['Bucket']}{key}", {})


def _secret(operation: str, given: Mapping[str, Any], _place: Place, __: Any) -> Iterator[Asked]:
    yield Asked(f"secretsmanager:{operation}", given["SecretId"], {})


def _without_resource(service: str) -> Callable[..., Iterator[Asked]]:
    def of(operation: str, _given: Mapping[str, Any], _place: Place, _: Any) -> Iterator[Asked]:
        yield Asked(f"{service}:{operation}", ANY, {})

    return of


SERVICES: dict[str, Callable[..., Iterator[Asked]]] = {
    "cloudwatch": _without_resource("cloudwatch"),
    "dynamodb": _dynamodb,
    "events": _events,
    "lambda": _without_resource("lambda"),
    "s3": _s3,
    "scheduler": _scheduler,
    "secretsmanager": _secret,
    "sqs": _sqs,
    "stepfunctions": _without_resource("states"),
}
