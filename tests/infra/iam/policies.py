"""Policies of IAM, evaluated as "Policy evaluation logic" of the IAM User Guide says, within one account."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tests.infra.iam.conditions import Context, arn_matches, as_list, holds, matches, substituted

Statement = Mapping[str, Any]
ARN_PARTS = 6


class Decision(Enum):
    """What a request meets."""

    ALLOW = "allowed"
    IMPLICIT_DENY = "not allowed by any statement"
    EXPLICIT_DENY = "denied by a statement"


@dataclass(frozen=True)
class Request:
    """What IAM is asked: may somebody do this to that, under these circumstances?

    Attributes:
        action: such as ``sqs:SendMessage``.
        resource: the ARN, or ``*`` for an action that takes no resource.
        context: condition key → value or values; keys are case-insensitive.
        principal: ARN of who asks, or name of a service; only policies of resources look at it.
    """

    action: str
    resource: str
    context: Context = field(default_factory=dict, compare=False)
    principal: str = ""

    @property
    def keys(self) -> Context:
        return {name.lower(): value for name, value in self.context.items()}


def evaluate(statements: Iterable[Statement], request: Request) -> Decision:
    """What the policies of an identity say; an explicit denial wins over every permission."""
    effects = {statement["Effect"] for statement in statements if applies(statement, request)}
    if "Deny" in effects:
        return Decision.EXPLICIT_DENY
    return Decision.ALLOW if "Allow" in effects else Decision.IMPLICIT_DENY


def decide(request: Request, identity: Sequence[Statement], resource: Sequence[Statement] = ()) -> Decision:
    """What all policies together say, for a caller and a resource of one account.

    Args:
        request: what is asked.
        identity: statements of the policies of the caller's role.
        resource: statements of the resource's policy. One that names the role itself allows without a policy
            of the role; one that names the account leaves it to the role's policies.
    """
    own = evaluate(identity, request)
    about = [statement for statement in resource if _names(statement, request.principal)]
    theirs = evaluate(about, request)
    if Decision.EXPLICIT_DENY in (own, theirs):
        return Decision.EXPLICIT_DENY
    return Decision.ALLOW if theirs is Decision.ALLOW else own


def applies(statement: Statement, request: Request) -> bool:
    """Whether a statement is about a request: its actions, its resources and its conditions."""
    return (
        _action(statement, request.action)
        and _resource(statement, request)
        and holds(statement.get("Condition") or {}, request.keys)
    )


def _action(statement: Statement, action: str) -> bool:
    return any(matches(action, one, ignore_case=True) for one in as_list(statement["Action"]))


def _resource(statement: Statement, request: Request) -> bool:
    # The trust policy of a role has none: it is about the role.
    patterns = as_list(statement.get("Resource", "*"))
    known = (pattern for one in patterns if (pattern := substituted(one, request.keys)) is not None)
    return any(pattern == "*" or arn_matches(request.resource, _complete(pattern)) for pattern in known)


def _complete(pattern: str) -> str:
    """IAM completes an ARN that ends early: ``arn:aws:sqs`` is ``arn:aws:sqs:*:*:*``."""
    parts = pattern.split(":", ARN_PARTS - 1)
    return ":".join(parts + ["*"] * (ARN_PARTS - len(parts)))


def _names(statement: Statement, principal: str) -> bool:
    named = statement.get("Principal")
    if named == "*":
        return True
    for kind, value in (named or {}).items():
        if kind in ("AWS", "Service") and any(one in ("*", principal) for one in as_list(value)):
            return True
    return False
