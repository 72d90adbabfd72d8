"""The policies that the grants write, with the stack's outputs instead of names.

    python -m tests.docs.granted_policies

prints them as docs/how-to/policies.md has them.
"""

import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from aws_cdk import App
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

from fanin_cdk import FaninStack, FaninTracker
from tests.infra.conftest import UNBUNDLED
from tests.infra.iam.templates import ACCOUNT, HASH, REGION, Templates

Grant = Callable[[FaninTracker, iam.Role], None]
GRANTS: Mapping[str, Grant] = {
    "Reader": lambda tracker, role: tracker.grant_read(role),
    "Producer over HTTPS": lambda tracker, role: tracker.grant_producer(role, via="https"),
    "Producer on the tables": lambda tracker, role: tracker.grant_producer(role, via="tables"),
    "Consumer over HTTPS": lambda tracker, role: tracker.grant_consumer(role, via="https"),
    "Consumer through the queues": lambda tracker, role: tracker.grant_consumer(role, via="queue"),
    "Consumer on the tables": lambda tracker, role: tracker.grant_consumer(role, via="tables"),
    "Operator": lambda tracker, role: tracker.grant_operator(role),
    "Administrator": lambda tracker, role: tracker.grant_administrator(role),
}
"""Title of a section of the page → the grant."""
CALL_API = "execute-api:Invoke"


@cache
def outputs() -> dict[str, str]:
    """Name of an output → the name of what it leads to, as ``Templates`` has it."""
    return _synthesized()[1]


@cache
def statements(title: str) -> list[dict[str, Any]]:
    """What a grant writes, as ``Templates`` has it; of one for the tables without the calls of the API."""
    found = [dict(one) for one in _synthesized()[0][title]]
    return [one for one in found if "on the tables" not in title or one["Action"] != CALL_API]


def policy(title: str) -> str:
    """A policy as the page shows it."""
    text = json.dumps({"Version": "2012-10-17", "Statement": statements(title)}, indent=2)
    for output, name in sorted(outputs().items(), key=lambda one: -len(one[1])):
        for before, after in (("/", '"'), ("/", "/"), (":", '"'), (":", "/")):
            text = text.replace(f"{before}{name}{after}", f"{before}<{output}>{after}")
    text = text.replace("schedule/<Bus>", "schedule/<ScheduleGroup>")  # both have the prefix as their name
    return text.replace(f":{REGION}:", ":<region>:").replace(f":{ACCOUNT}:", ":<account>:")


@cache
def _synthesized() -> tuple[dict[str, list[Any]], dict[str, str]]:
    stack = FaninStack(App(context=UNBUNDLED), "fanin")
    roles = {title: iam.Role(stack, title, assumed_by=iam.AccountRootPrincipal()) for title in GRANTS}
    for title, grant in GRANTS.items():
        grant(stack.tracker, roles[title])
    template = Template.from_stack(stack).to_json()
    templates = Templates({"fanin": template})
    found = {
        title: templates.statements(stack.get_logical_id(role.node.default_child))
        for title, role in roles.items()
    }
    named = {}
    for output, declared in template["Outputs"].items():
        match declared["Value"]:
            case {"Ref": str(resource)} | {"Fn::GetAtt": [str(resource), _]}:
                named[output] = templates.name(resource)
            case str(text):
                named[output] = text
    named["ApiUrl"] = HASH.sub("", named["ApiUrl"])
    return found, named


if __name__ == "__main__":
    for title in sys.argv[1:] or GRANTS:
        sys.stdout.write(f"### {title}\n\n```json\n{policy(title)}\n```\n\n")
