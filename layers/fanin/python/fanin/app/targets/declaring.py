"""Checking the targets of an opening: all of it before anything is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fanin import names
from fanin.app.ports import Ports
from fanin.domain import limits
from fanin.domain.targets import (
    CALLBACK_ID,
    FIELD,
    MAX_CALLBACK_ID,
    MAX_TARGETS,
    MAX_TASK_TOKEN,
    Target,
    TargetType,
    When,
)
from fanin.errors import InvalidRequest, NotConfigured


def checked_targets(ports: Ports, on_end: Sequence[Target]) -> tuple[Target, ...]:
    """Check the targets of a request, and look up the queues among them.

    Returns:
        The targets, with the URLs of queues that were given by ARN.

    Raises:
        InvalidRequest: a target is not what its type needs, or there are more than five.
        ChannelRefused: a queue does not exist, is a FIFO queue, or does not carry the tag ``fanin:channel``.
        NotConfigured: this process does not know the stack's queue of targets.
    """
    if not on_end:
        return ()
    if len(on_end) > MAX_TARGETS:
        raise InvalidRequest(f"on_end has {len(on_end)} targets; a batch may have at most {MAX_TARGETS}")
    if not ports.defaults.targets:
        raise NotConfigured(
            f"on_end needs the stack's queue of targets: set {names.ENV_TARGETS_QUEUE_URL} to its output"
            " TargetsQueueUrl"
        )
    return tuple(_checked(ports, place, target) for place, target in enumerate(on_end))


def _checked(ports: Ports, place: int, target: Target) -> Target:
    what = f"on_end[{place}]"
    if not isinstance(target.type, TargetType) or not isinstance(target.when, When):
        raise InvalidRequest(f"{what} needs a type of {_any_of(TargetType)}, and when of {_any_of(When)}")
    needed = FIELD[target.type]
    given = [name for name in FIELD.values() if getattr(target, name) is not None]
    if given != [needed]:
        raise InvalidRequest(
            f"{what} has the type {target.type}, which needs {needed} and nothing else;"
            f" it has {' and '.join(given) or 'neither'}"
        )
    match target.type:
        case TargetType.STEP_FUNCTIONS:
            limits.text(f"{what}.task_token", target.task_token, MAX_TASK_TOKEN, least=1)
        case TargetType.DURABLE_CALLBACK:
            named = limits.text(f"{what}.callback_id", target.callback_id, MAX_CALLBACK_ID, least=1)
            if not re.fullmatch(CALLBACK_ID, named):
                raise InvalidRequest(f"{what}.callback_id is not one: it must be base64, as Lambda gives it")
        case TargetType.SQS:
            channel = limits.text(f"{what}.queue_url", target.queue_url, limits.MAX_CHANNEL, least=1)
            return replace(target, queue_url=ports.channels.resolve(channel))
        case TargetType.WEBHOOK:
            from fanin.domain.targets import parse_url  # noqa: PLC0415  few batches have webhooks

            parse_url(target.url or "", ports.defaults.webhook_hosts)
    return target


def _any_of(kind: type[TargetType | When]) -> str:
    return ", ".join(one.value for one in kind)
