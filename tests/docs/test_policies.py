"""docs/how-to/policies.md: its policies are those of the grants, and allow that and nothing else."""

import json
import re
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from fanin_cdk.keys import USE
from tests.docs import granted_policies, pages
from tests.infra.iam.policies import Decision, Request, evaluate
from tests.infra.iam.templates import ACCOUNT, REGION

TEXT = pages.text("how-to/policies.md")
(FILL,) = pages.code("how-to/policies.md")


def section(title: str) -> str:
    return re.split(r"^##+ ", TEXT.split(f"\n### {title}\n")[1], flags=re.MULTILINE)[0]


def shown(title: str) -> str:
    return section(title).split("```json\n")[1].split("\n```")[0]


@cache
def described() -> str:
    """What ``aws cloudformation describe-stacks`` prints about a stack, with the names of ``Templates``."""
    urls = {
        "ApiUrl": "https://{}.execute-api.eu-west-1.amazonaws.com",
        "ScheduleRoleArn": f"arn:aws:iam::{ACCOUNT}:role/{{}}",
    }
    outputs = [
        {
            "OutputKey": output,
            "OutputValue": urls.get(
                output, f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{{}}" if "QueueUrl" in output else "{}"
            ).format(name),
        }
        for output, name in granted_policies.outputs().items()
    ]
    stack = f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/fanin/00000000-0000-4000-8000-000000000000"
    return json.dumps({"Stacks": [{"StackId": stack, "Outputs": outputs}]})


@cache
def filled(policy: str) -> list[dict[str, Any]]:
    """The statements of a policy after the page's script has filled in the names."""
    script = FILL.replace("json.load(sys.stdin)", f"json.loads({described()!r})")
    command = [sys.executable, "-c", script, "/dev/stdin"]
    done = subprocess.run(command, input=policy, capture_output=True, text=True, check=True)
    statements: list[dict[str, Any]] = json.loads(done.stdout)["Statement"]
    return statements


def send(output: str) -> Request:
    return Request("sqs:SendMessage", f"arn:aws:sqs:{REGION}:{ACCOUNT}:{granted_policies.outputs()[output]}")


def test_it_has_a_policy_for_each_grant_and_each_way():
    titles = re.findall(r"^### (.+)$", TEXT, re.MULTILINE)
    assert titles == list(granted_policies.GRANTS)


@pytest.mark.parametrize("title", granted_policies.GRANTS)
def test_a_policy_is_what_the_grant_writes(title):
    assert shown(title) == granted_policies.policy(title), "python -m tests.docs.granted_policies prints it"


@pytest.mark.parametrize("title", granted_policies.GRANTS)
def test_filled_in_it_is_the_policy_of_the_stack(title):
    assert filled(shown(title)) == granted_policies.statements(title)


def test_the_statements_for_the_queue_of_the_work():
    # Given both policies, with the queue of the stack
    sender, receiver = re.findall(r"```json\n(.*?)\n```", TEXT.split("## The policies")[0], re.DOTALL)
    queue = send("WorkQueueUrl").resource
    for action, policy in (
        ("sqs:SendMessage", sender),
        ("sqs:ReceiveMessage", receiver),
        ("sqs:DeleteMessage", receiver),
    ):
        # Then each allows its own, and not that of the other
        for one in (sender, receiver):
            decision = evaluate(filled(one), Request(action, queue))
            assert (decision is Decision.ALLOW) == (one is policy)
        assert evaluate(filled(policy), send("AckQueueUrl")) is Decision.IMPLICIT_DENY


@pytest.mark.parametrize("title", granted_policies.GRANTS)
def test_a_policy_fits_into_a_managed_policy(title):
    text = json.dumps({"Version": "2012-10-17", "Statement": filled(shown(title))}, separators=(",", ":"))
    assert len(text) < 5_000 < int(re.search(r"managed policy ([\d,]+)", TEXT)[1].replace(",", ""))


def test_it_names_what_the_grants_allow_on_a_key():
    told = TEXT.split("## A key of your own")[1].split("\n## ")[0]
    assert re.findall(r"`(kms:(?!Via)\w+)`", told) == list(USE)
