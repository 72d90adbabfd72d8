"""Findings of cdk-nag that are right as they are, each accepted where it arises and with its reason."""

from __future__ import annotations

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


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
