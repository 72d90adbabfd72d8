"""What tests have made beside the stacks, and what is left of a deployment after its removal."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from botocore.exceptions import ClientError

from tests.smoke.account import Account, Deployed

RULE: Final = "subscriber"
MADE: Final = ("-behaviour-", "-subscriber")
"""What follows the prefix in the names of queues that the behaviour suite makes."""


def remove_made(deployed: Deployed) -> None:
    """Delete the queues and the rule that the behaviour suite has made; the stacks know nothing of them."""
    sqs, events = deployed.client("sqs"), deployed.client("events")
    for url in _queues(deployed.account, deployed.name):
        if url.rpartition("/")[2].removeprefix(deployed.name).startswith(MADE):
            sqs.delete_queue(QueueUrl=url)
    rules = events.list_rules(EventBusName=deployed.bus, NamePrefix=RULE)["Rules"]
    for rule in (rule["Name"] for rule in rules):
        targets = events.list_targets_by_rule(Rule=rule, EventBusName=deployed.bus)["Targets"]
        ids = [target["Id"] for target in targets]
        events.remove_targets(Rule=rule, EventBusName=deployed.bus, Ids=ids)
        events.delete_rule(Name=rule, EventBusName=deployed.bus)


def left(account: Account, prefix: str) -> list[str]:
    """Everything whose name begins with a prefix, each with its kind."""
    return [
        f"{kind} {name}"
        for kind, names in _KINDS.items()
        for name in names(account, prefix)
        if name.rpartition("/")[2].lower().startswith(prefix)
    ]


def _queues(account: Account, prefix: str) -> Iterator[str]:
    found = account.client("sqs").get_paginator("list_queues")
    pages = found.paginate(QueueNamePrefix=prefix, PaginationConfig={"PageSize": 1_000})
    return (url for page in pages for url in page.get("QueueUrls", ()))


def _paged(service: str, call: str, field: str, name: str | None = None, **more: Any) -> Any:
    def names(account: Account, _: str) -> Iterator[str]:
        for page in account.client(service).get_paginator(call).paginate(**more):
            yield from (one[name] if name else one for one in page[field])

    return names


def _stacks(account: Account, _: str) -> Iterator[str]:
    pages = account.client("cloudformation").get_paginator("describe_stacks").paginate()
    for page in pages:
        yield from (one["StackName"] for one in page["Stacks"] if one["StackStatus"] != "DELETE_COMPLETE")


def _buckets(account: Account, _: str) -> Iterator[str]:
    return (bucket["Name"] for bucket in account.client("s3").list_buckets()["Buckets"])


def _buses(account: Account, prefix: str) -> Iterator[str]:
    return (bus["Name"] for bus in account.client("events").list_event_buses(NamePrefix=prefix)["EventBuses"])


def _applications(account: Account, _: str) -> Iterator[str]:
    try:
        pages = account.client("emr-serverless").get_paginator("list_applications").paginate()
        for page in pages:
            yield from (one["name"] for one in page["applications"] if one["state"] != "TERMINATED")
    except ClientError:
        if not account.emulator:  # which has no EMR Serverless
            raise


_KINDS: Final[dict[str, Callable[[Account, str], Iterator[str]]]] = {
    "stack": _stacks,
    "table": _paged("dynamodb", "list_tables", "TableNames"),
    "queue": _queues,
    "bucket": _buckets,
    "function": _paged("lambda", "list_functions", "Functions", "FunctionName"),
    "role": _paged("iam", "list_roles", "Roles", "RoleName"),
    "log group": _paged("logs", "describe_log_groups", "logGroups", "logGroupName"),
    "event bus": _buses,
    "schedule group": _paged("scheduler", "list_schedule_groups", "ScheduleGroups", "Name"),
    "alarm": _paged("cloudwatch", "describe_alarms", "MetricAlarms", "AlarmName"),
    "state machine": _paged("stepfunctions", "list_state_machines", "stateMachines", "name"),
    "EMR application": _applications,
}
"""Kind → what lists the names of that kind in an account."""
