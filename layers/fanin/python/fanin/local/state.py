"""What is known about the local stack: one JSON file that every command finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final, Self

from fanin import names
from fanin.errors import LocalStackFailed
from fanin.local import aws
from fanin.local.emulator import Emulator

FOLDER: Final = ".fanin"
FILE: Final = "local.json"

# The stack's output behind each field.
OUTPUTS: Final = {
    "batches_table": names.OUTPUT_BATCHES_TABLE,
    "words_table": names.OUTPUT_WORDS_TABLE,
    "parts_table": names.OUTPUT_PARTS_TABLE,
    "directory_table": names.OUTPUT_DIRECTORY_TABLE,
    "bus": names.OUTPUT_BUS,
    "work_queue_url": names.OUTPUT_WORK_QUEUE,
    "ack_queue_url": names.OUTPUT_ACK_QUEUE,
    "scatter_queue_url": names.OUTPUT_SCATTER_QUEUE,
    "reply_queue_url": names.OUTPUT_REPLY_QUEUE,
    "claims_bucket": names.OUTPUT_CLAIMS_BUCKET,
    "schedule_group": names.OUTPUT_SCHEDULE_GROUP,
    "schedule_role_arn": names.OUTPUT_SCHEDULE_ROLE,
    "timer_arn": names.OUTPUT_TIMER,
    "timer_dlq_arn": names.OUTPUT_TIMER_DLQ,
    "router_arn": names.OUTPUT_ROUTER,
    "buffer_prefix": names.OUTPUT_BUFFER_PREFIX,
}

# The field behind each variable of the library's and the functions' environment.
VARIABLES: Final = {
    names.ENV_API_URL: "api_url",
    names.ENV_BATCHES_TABLE: "batches_table",
    names.ENV_WORDS_TABLE: "words_table",
    names.ENV_PARTS_TABLE: "parts_table",
    names.ENV_DIRECTORY_TABLE: "directory_table",
    names.ENV_BUS: "bus",
    names.ENV_ACK_QUEUE_URL: "ack_queue_url",
    names.ENV_SCATTER_QUEUE_URL: "scatter_queue_url",
    names.ENV_REPLY_QUEUE_URL: "reply_queue_url",
    names.ENV_CLAIMS_BUCKET: "claims_bucket",
    names.ENV_SCHEDULE_GROUP: "schedule_group",
    names.ENV_SCHEDULE_ROLE_ARN: "schedule_role_arn",
    names.ENV_TIMER_ARN: "timer_arn",
    names.ENV_TIMER_DLQ_ARN: "timer_dlq_arn",
    names.ENV_ROUTER_ARN: "router_arn",
    names.ENV_BUFFER_PREFIX: "buffer_prefix",
}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack deployed to the emulator: where everything is.

    Attributes:
        endpoint_url: the emulator, for every AWS service.
        api_url: base URL of the HTTP API; append ``/v1/…``.
        region: AWS region.
        account: AWS account number.
        access_key_id: the account's root key; an IAM user's works too.
        secret_access_key: its secret.
        auth: whether the emulator verifies signatures and enforces policies.
        pid: the emulator's process.
        port: its port.
        log_file: its log.
        fingerprint: names the assembly that was deployed.
        batches_table: name of the table of batches.
        words_table: name of the table of words.
        parts_table: name of the table of parts.
        directory_table: name of the directory's table.
        bus: name of the event bus.
        work_queue_url: queue for work, whose dead messages fail their items.
        ack_queue_url: queue that takes acks.
        scatter_queue_url: queue of the worker that sends a scatter's messages.
        reply_queue_url: queue that takes replies to scatters.
        claims_bucket: bucket of payloads too large for a reply.
        schedule_group: group of the deadlines' schedules.
        schedule_role_arn: role that lets them call the timer.
        timer_arn: function they call.
        timer_dlq_arn: queue for the calls that failed.
        router_arn: function that the rules of routes call.
        buffer_prefix: of the names of the queues that buffers get.
    """

    endpoint_url: str
    api_url: str
    region: str
    account: str
    access_key_id: str
    secret_access_key: str
    auth: bool
    pid: int
    port: int
    log_file: str
    fingerprint: str
    batches_table: str
    words_table: str
    parts_table: str
    directory_table: str
    bus: str
    work_queue_url: str
    ack_queue_url: str
    scatter_queue_url: str
    reply_queue_url: str
    claims_bucket: str
    schedule_group: str
    schedule_role_arn: str
    timer_arn: str
    timer_dlq_arn: str
    router_arn: str
    buffer_prefix: str

    @classmethod
    def of(cls, emulator: Emulator, outputs: Mapping[str, str], *, log_file: Path, fingerprint: str) -> Self:
        """Describe what was deployed.

        Raises:
            LocalStackFailed: the stack lacks an output.
        """
        if absent := {names.OUTPUT_API_URL, *OUTPUTS.values()} - outputs.keys():
            raise LocalStackFailed(f"the stack has no output {', '.join(sorted(absent))}")
        return cls(
            endpoint_url=emulator.endpoint_url,
            api_url=api_url(emulator.endpoint_url, outputs[names.OUTPUT_API_URL]),
            region=aws.REGION,
            account=aws.ACCOUNT,
            access_key_id=aws.ACCESS_KEY,
            secret_access_key=aws.SECRET_KEY,
            auth=emulator.auth,
            pid=emulator.pid,
            port=emulator.port,
            log_file=str(log_file),
            fingerprint=fingerprint,
            **{field: outputs[output] for field, output in OUTPUTS.items()},
        )

    def client(self, service: str) -> Any:
        """A boto3 client for the stack, with root's keys; annotate the result with its type stub."""
        return aws.client(service, self.endpoint_url)

    def runs_on(self, emulator: Emulator) -> bool:
        """Whether this very process of the emulator holds the stack."""
        return (self.pid, self.port) == (emulator.pid, emulator.port)


def api_url(endpoint_url: str, output: str) -> str:
    """The emulator's address of an API that CloudFormation names ``https://<id>.execute-api.…``."""
    api_id = output.split("//", 1)[1].split(".", 1)[0]
    return f"{endpoint_url}/_aws/execute-api/{api_id}"


def environment(stack: Stack) -> dict[str, str]:
    """Variables with which boto3, the AWS CLI, the library and the functions' code use the local stack."""
    return {
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_REGION": stack.region,
        "AWS_DEFAULT_REGION": stack.region,
        "AWS_ACCESS_KEY_ID": stack.access_key_id,
        "AWS_SECRET_ACCESS_KEY": stack.secret_access_key,
        "AWS_SESSION_TOKEN": "",  # one left over from a real account would be refused
        **{variable: str(getattr(stack, field)) for variable, field in VARIABLES.items()},
    }


def write(root: Path, stack: Stack) -> None:
    """Save the description; a reader sees the old one or the new one, never half of it."""
    target = root / FOLDER / FILE
    draft = target.with_suffix(".draft")
    draft.write_text(json.dumps(asdict(stack), indent=2) + "\n")
    draft.replace(target)


def read(root: Path) -> Stack | None:
    """The description saved under a root; None if there is none, or another version of fanin wrote it."""
    try:
        values = json.loads((root / FOLDER / FILE).read_text())
    except FileNotFoundError:
        return None
    return Stack(**values) if values.keys() == {field.name for field in fields(Stack)} else None


def remove(root: Path) -> None:
    """Forget the description."""
    (root / FOLDER / FILE).unlink(missing_ok=True)
