"""Turns the outputs of the deployed stack into its description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fanin import names
from fanin.client.local_stack import Stack
from fanin.errors import LocalStackFailed
from fanin.local import aws
from fanin.local.emulator import Emulator

# Field of the description → output of the stack.
OUTPUTS: Final = {
    "batches_table": names.OUTPUT_BATCHES_TABLE,
    "words_table": names.OUTPUT_WORDS_TABLE,
    "parts_table": names.OUTPUT_PARTS_TABLE,
    "directory_table": names.OUTPUT_DIRECTORY_TABLE,
    "bus": names.OUTPUT_BUS,
    "work_queue_url": names.OUTPUT_WORK_QUEUE,
    "ack_queue_url": names.OUTPUT_ACK_QUEUE,
    "scatter_queue_url": names.OUTPUT_SCATTER_QUEUE,
    "redrive_queue_url": names.OUTPUT_REDRIVE_QUEUE,
    "reply_queue_url": names.OUTPUT_REPLY_QUEUE,
    "targets_queue_url": names.OUTPUT_TARGETS_QUEUE,
    "claims_bucket": names.OUTPUT_CLAIMS_BUCKET,
    "schedule_group": names.OUTPUT_SCHEDULE_GROUP,
    "schedule_role_arn": names.OUTPUT_SCHEDULE_ROLE,
    "timer_arn": names.OUTPUT_TIMER,
    "timer_dlq_arn": names.OUTPUT_TIMER_DLQ,
    "router_arn": names.OUTPUT_ROUTER,
    "buffer_prefix": names.OUTPUT_BUFFER_PREFIX,
    "buffer_dead_letters_arn": names.OUTPUT_BUFFER_DEAD_LETTERS,
}


def describe(emulator: Emulator, outputs: Mapping[str, str], *, log_file: Path, fingerprint: str) -> Stack:
    """Describe what was deployed.

    Args:
        emulator: where it was deployed to.
        outputs: of all stacks, by name.
        log_file: the emulator's log.
        fingerprint: hash of the assembly that was deployed.

    Raises:
        LocalStackFailed: the stack lacks an output; the message names it.
    """
    if absent := {names.OUTPUT_API_URL, *OUTPUTS.values()} - outputs.keys():
        raise LocalStackFailed(
            f"the stack has no output {', '.join(sorted(absent))}; it is not a stack of this version"
        )
    return Stack(
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
        outputs=dict(outputs),
        **{field: outputs[output] for field, output in OUTPUTS.items()},
    )


def runs_on(stack: Stack, emulator: Emulator) -> bool:
    """Whether this very process of the emulator holds the stack; a restarted emulator is empty."""
    return (stack.pid, stack.port) == (emulator.pid, emulator.port)


def api_url(endpoint_url: str, output: str) -> str:
    """The URL in the emulator of an API whose URL on AWS would be ``https://<id>.execute-api.…``."""
    api_id = output.split("//", 1)[1].split(".", 1)[0]
    return f"{endpoint_url}/_aws/execute-api/{api_id}"
