"""``FANIN_PROFILE=local``: the local stack as environment variables, in place of those of another stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fanin import names
from fanin.client import local_stack
from fanin.client.local_stack import Stack
from fanin.errors import NotConfigured

LOCAL: Final = "local"
"""The only profile."""
VARIABLES: Final = {
    names.ENV_API_URL: "api_url",
    names.ENV_BATCHES_TABLE: "batches_table",
    names.ENV_WORDS_TABLE: "words_table",
    names.ENV_PARTS_TABLE: "parts_table",
    names.ENV_DIRECTORY_TABLE: "directory_table",
    names.ENV_BUS: "bus",
    names.ENV_WORK_QUEUE_URL: "work_queue_url",
    names.ENV_ACK_QUEUE_URL: "ack_queue_url",
    names.ENV_SCATTER_QUEUE_URL: "scatter_queue_url",
    names.ENV_REDRIVE_QUEUE_URL: "redrive_queue_url",
    names.ENV_REPLY_QUEUE_URL: "reply_queue_url",
    names.ENV_TARGETS_QUEUE_URL: "targets_queue_url",
    names.ENV_CLAIMS_BUCKET: "claims_bucket",
    names.ENV_SCHEDULE_GROUP: "schedule_group",
    names.ENV_SCHEDULE_ROLE_ARN: "schedule_role_arn",
    names.ENV_TIMER_ARN: "timer_arn",
    names.ENV_TIMER_DLQ_ARN: "timer_dlq_arn",
    names.ENV_ROUTER_ARN: "router_arn",
    names.ENV_BUFFER_PREFIX: "buffer_prefix",
    names.ENV_BUFFER_DEAD_LETTERS_ARN: "buffer_dead_letters_arn",
}
"""Environment variable of the library and the functions → field of the description."""
IGNORE_ENDPOINTS: Final = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
"""Whether boto3 ignores endpoints of the environment and of configuration files: ``true`` or ``false``."""
_OF_A_SERVICE: Final = "AWS_ENDPOINT_URL_"
"""What begins the variables that clients of one service prefer to ``AWS_ENDPOINT_URL``."""


def variables(stack: Stack, over: Iterable[str] = ()) -> dict[str, str]:
    """Environment variables that lead boto3, the AWS CLI, the library and the jobs to the local stack.

    Args:
        stack: the local stack.
        over: names of the variables that these come on top of. Those among them that would lead the clients
            of one service elsewhere become empty, which counts as not set: whoever takes these over may not
            delete any.
    """
    return {
        **{name: "" for name in over if name.startswith(_OF_A_SERVICE)},
        IGNORE_ENDPOINTS: "false",  # whatever a configuration file says
        "AWS_ENDPOINT_URL": stack.endpoint_url,
        "AWS_REGION": stack.region,
        "AWS_DEFAULT_REGION": stack.region,
        "AWS_ACCESS_KEY_ID": stack.access_key_id,
        "AWS_SECRET_ACCESS_KEY": stack.secret_access_key,
        "AWS_SESSION_TOKEN": "",  # the emulator would refuse one that is left over from a real account
        **{variable: str(getattr(stack, field)) for variable, field in VARIABLES.items()},
    }


def profiled(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment, in which the local stack takes the place of others if ``FANIN_PROFILE`` names it.

    Raises:
        NotConfigured: there is no local stack, or the profile is another one.
    """
    if wants_local(environment):
        return {**environment, **variables(local_stack.current(), environment)}
    return dict(environment)


def wants_local(environment: Mapping[str, str]) -> bool:
    """Whether ``FANIN_PROFILE`` names the local stack.

    Raises:
        NotConfigured: it is another profile.
    """
    profile = environment.get(names.ENV_PROFILE)
    if profile and profile != LOCAL:
        raise NotConfigured(f"{names.ENV_PROFILE} is {profile!r}; the only profile is {LOCAL!r}")
    return profile == LOCAL
