"""Findings of cdk-nag that are right as they are, each accepted where it arises and with its reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def accept_below(role: IConstruct, resource: IConstruct, arn: str, below: str, reason: str) -> None:
    """Accept that a role may use everything below a resource, of its own stack or of another.

    Args:
        role: who may.
        resource: whose ARN it is.
        arn: the ARN, as the CDK gives it.
        below: what the policy has after it, such as ``/*``.
        reason: why it is right.
    """
    home = Stack.of(resource)
    if home.node.path == Stack.of(role).node.path:
        name, attribute = home.resolve(arn)["Fn::GetAtt"]
        named = f"<{name}.{attribute}>"
    else:
        named = home.resolve(home.export_value(arn))["Fn::ImportValue"]
    accept(role, f"IAM5[Resource::{named}{below}]", reason)


def accept(construct: IConstruct, finding: str, reason: str) -> None:
    """Accept one finding on a construct and what is in it.

    Args:
        construct: where it was found.
        finding: the rule, with its subject in brackets where the rule has subjects.
        reason: why it is right here.
    """
    Validations.of(construct).acknowledge(
        Acknowledgment(id=f"AwsSolutions::AwsSolutions-{finding}", reason=reason)
    )
