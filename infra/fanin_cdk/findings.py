"""Accepts findings of cdk-nag that are intended, each where it arises and with a reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct


def accept_below(role: IConstruct, resource: IConstruct, arn: str, below: str, reason: str) -> None:
    """Accept that a role may use everything below a resource, in its own stack or in another one.

    Args:
        role: the role with the policy.
        resource: the resource.
        arn: ARN of the resource, as the CDK gives it.
        below: what follows the ARN in the policy, such as ``/*``.
        reason: why this is intended.
    """
    home = Stack.of(resource)
    if home.node.path == Stack.of(role).node.path:
        name, attribute = home.resolve(arn)["Fn::GetAtt"]
        named = f"<{name}.{attribute}>"
    else:
        named = home.resolve(home.export_value(arn))["Fn::ImportValue"]
    accept(role, f"IAM5[Resource::{named}{below}]", reason)


def accept(construct: IConstruct, finding: str, reason: str) -> None:
    """Accept one finding on a construct and its children.

    Args:
        construct: where it was found.
        finding: id of the rule, followed by its subject in brackets if the rule has subjects.
        reason: why this is intended.
    """
    Validations.of(construct).acknowledge(
        Acknowledgment(id=f"AwsSolutions::AwsSolutions-{finding}", reason=reason)
    )
