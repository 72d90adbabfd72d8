"""The stack, synthesized once for each set of settings; assets are not bundled."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import pytest

os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "18,20,22")

import aws_cdk as cdk
from aws_cdk.assertions import Template

from fanin_cdk import FaninStack, Settings

UNBUNDLED = {"aws:cdk:bundling-stacks": []}


class Synthesized:
    """A stack with its template, and lookups in it."""

    def __init__(self, stack: cdk.Stack) -> None:
        self.stack = stack
        self.template = Template.from_stack(stack)
        self.resources: dict[str, Any] = self.template.to_json()["Resources"]

    def of_type(self, kind: str) -> dict[str, dict[str, Any]]:
        """Properties of all resources of a type, by logical id."""
        return {
            name: resource.get("Properties", {})
            for name, resource in self.resources.items()
            if resource["Type"] == kind
        }

    def id_of(self, construct: Any) -> str:
        """Logical id of a construct's main resource."""
        return self.stack.get_logical_id(construct.node.default_child)

    def properties(self, construct: Any) -> dict[str, Any]:
        return self.resources[self.id_of(construct)]["Properties"]

    def statements(self, role: Any) -> list[dict[str, Any]]:
        """What a role may do, by all policies of the template that are attached to it."""
        name = self.id_of(role)
        return [
            statement
            for policy in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": name} in policy["Roles"]
            for statement in policy["PolicyDocument"]["Statement"]
        ]


@cache
def synthesized(**settings: Any) -> Synthesized:
    app = cdk.App(context=UNBUNDLED)
    return Synthesized(FaninStack(app, "fanin", settings=Settings(**settings)))


@pytest.fixture(scope="session")
def synthesize():
    return synthesized


@pytest.fixture(scope="session")
def fanin() -> Synthesized:
    return synthesized()


@pytest.fixture(scope="session")
def tracker(fanin):
    return fanin.stack.tracker
