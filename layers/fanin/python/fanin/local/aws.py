"""The emulator as an AWS account: its region and keys, boto3 clients for it, and what is deployed there."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from boto3.session import Session

from fanin import names
from fanin.client.local_stack import Stack
from fanin.errors import LocalStackFailed
from fanin.local.emulator import Emulator

REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
ACCESS_KEY: Final = "test"  # the root user; fanin.local says what else the emulator accepts
SECRET_KEY: Final = "test"  # noqa: S105 - the emulator has no other, and everybody knows it


def session() -> Session:
    """A boto3 session with the root user's keys, whatever the environment holds."""
    return Session(aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION)


def client(service: str, endpoint_url: str) -> Any:
    """A boto3 client for the emulator; annotate the result with its type stub.

    Args:
        service: boto3's name of the service, such as ``sqs``.
        endpoint_url: URL of the emulator.
    """
    return session().client(service, endpoint_url=endpoint_url)


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
    if absent := {names.OUTPUT_API_URL, *names.OUTPUTS.values()} - outputs.keys():
        raise LocalStackFailed(
            f"the stack has no output {', '.join(sorted(absent))}; it is not a stack of this version"
        )
    return Stack(
        endpoint_url=emulator.endpoint_url,
        environment={
            names.ENV_API_URL: api_url(emulator.endpoint_url, outputs[names.OUTPUT_API_URL]),
            **{variable: outputs[output] for variable, output in names.OUTPUTS.items()},
        },
        region=REGION,
        account=ACCOUNT,
        access_key_id=ACCESS_KEY,
        secret_access_key=SECRET_KEY,
        auth=emulator.auth,
        pid=emulator.pid,
        port=emulator.port,
        log_file=str(log_file),
        fingerprint=fingerprint,
        outputs=dict(outputs),
    )


def runs_on(stack: Stack, emulator: Emulator) -> bool:
    """Whether this very process of the emulator holds the stack; a restarted emulator is empty."""
    return (stack.pid, stack.port) == (emulator.pid, emulator.port)


def api_url(endpoint_url: str, output: str) -> str:
    """The URL in the emulator of an API whose URL on AWS would be ``https://<id>.execute-api.…``."""
    api_id = output.split("//", 1)[1].split(".", 1)[0]
    return f"{endpoint_url}/_aws/execute-api/{api_id}"
