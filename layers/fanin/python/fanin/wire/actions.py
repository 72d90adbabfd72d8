"""The action log: who pressed what, on what, and what became of it.

The API writes a line for each action that it was asked for, the console for each button that was pressed, and
both lines have the fields below. They have no body of a request and no token.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from fanin.domain.access import AccessGroup
from fanin.wire.json_types import encode_time

MESSAGE: Final = "action"
"""The message of the log lines, by which queries find them."""

MAX_TEXT: Final = 1_024
"""Characters of one text in a line; what is longer was not made by fanin or AWS, and is cut off."""

Result: TypeAlias = Mapping[str, int | str]
"""Numbers and words of the service's own; never a user's text."""


class CallerKind(StrEnum):
    """How a caller is known.

    Attributes:
        IAM: by the AWS identity that signed the request.
        JWT: by the claims of a token.
        ADDRESS: by the address alone, since nobody checked more.
        LOCAL: as the user of the machine on which the console runs.
    """

    IAM = "iam"
    JWT = "jwt"
    ADDRESS = "address"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asked for an action.

    Attributes:
        kind: how the caller is known.
        id: the ARN of the AWS identity, the subject of the token, the address, or the user's name.
        account: AWS account of the identity.
        issuer: of the token.
        client: of the token: the application that the subject uses.
    """

    kind: CallerKind
    id: str
    account: str | None = None
    issuer: str | None = None
    client: str | None = None


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """How an action ended.

    Attributes:
        status: HTTP status of the answer.
        code: of the error, as in a problem; None if it succeeded.
    """

    status: int
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """One line of the action log.

    Attributes:
        action: id of the operation, as in the OpenAPI document.
        on: what it was done to, such as ``batch_id``, as the caller wrote it.
        caller: who asked for it.
        outcome: how it ended.
        at: when it was asked for, ms.
        result: what it did, as far as the answer says so.
        group: the group of calls that it belongs to.
        request_id: of API Gateway, also in the access log and in problems; None if the call did not come that
            way.
    """

    action: str
    on: Mapping[str, str]
    caller: Caller
    outcome: ActionOutcome
    at: int
    result: Result = field(default_factory=dict)
    group: AccessGroup | None = None
    request_id: str | None = None


def log_fields(action: Action) -> dict[str, Any]:
    """Write an action as the fields of its log line; those that are None are left out.

    What it was done to is ``object``, since ``on`` is a keyword of the languages in which logs are queried.
    """
    return _given(
        action=action.action,
        group=action.group,
        at=encode_time(action.at),
        request_id=action.request_id,
        object={name: bounded(text) for name, text in action.on.items()},
        caller=_given(**asdict(action.caller)),
        outcome=_given(**asdict(action.outcome)),
        result=dict(action.result),
    )


def bounded(text: str) -> str:
    """The text as a line can have it: not too long, and without halves of surrogate pairs."""
    return text[:MAX_TEXT].encode(errors="replace").decode()


def _given(**values: Any) -> dict[str, Any]:
    return {
        name: bounded(value) if isinstance(value, str) else value
        for name, value in values.items()
        if value is not None
    }
