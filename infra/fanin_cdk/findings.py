"""Accepts findings of cdk-nag that are intended, each where it arises and with a reason."""

import hashlib
import json
import re

from aws_cdk import Acknowledgment, Stack, Validations
from constructs import IConstruct

REFERENCES = "@aws-cdk/core:defaultCrossStackReferences"
"""Key of the context in which ``CrossStackReferences.consume`` keeps how a scope refers to other stacks."""


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
    elif role.node.try_get_context(REFERENCES) == "weak":
        named = _weak(home, arn)
    else:
        named = home.resolve(home.export_value(arn))["Fn::ImportValue"]
    accept(role, f"IAM5[Resource::{named}{below}]", reason)


def _weak(home: Stack, arn: str) -> str:
    """A weak reference as the template will have it, with the name that the CDK gives to the output."""
    output = f"Output{_compact(home.resolve(arn))}"
    digest = hashlib.md5(f"Publish/{output}".encode(), usedforsecurity=False).hexdigest()[:8].upper()
    name = f"Publish{re.sub('[^A-Za-z0-9]', '', output)}{digest}"
    region = home.resolve(home.region)
    return _compact(
        {"Fn::GetStackOutput": {"StackName": home.stack_name, "Region": region, "OutputName": name}}
    )


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


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
