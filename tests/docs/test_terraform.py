"""docs/how-to/terraform.md: its files can be parsed, refer to what there is, and fit fanin's template."""

import re
from typing import Any

import hcl2
import pytest

import fanin
from tests.docs import pages
from tests.docs.plain_template import plain_template
from tests.infra.iam.policies import Decision, Request, evaluate

TEXT = pages.text("how-to/terraform.md")
STACK, CONSUMER = pages.code("how-to/terraform.md", "hcl")
FILES = STACK + CONSUMER
WORK, ACKS = (f"arn:aws:sqs:eu-west-1:123456789012:{name}" for name in ("work", "acks"))


def plain(value: Any) -> Any:
    """A value of the parser, which quotes texts and marks blocks, as Python has it."""
    match value:
        case str():
            return value.removeprefix('"').removesuffix('"')
        case list():
            return [plain(one) for one in value]
        case dict():
            return {plain(name): plain(one) for name, one in value.items() if not name.startswith("__")}
    return value


@pytest.fixture(scope="module")
def parsed() -> dict[str, Any]:
    content: dict[str, Any] = plain(hcl2.loads(FILES))
    return content


def blocks(parsed: dict[str, Any], kind: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The blocks of a kind by their two labels."""
    return {
        (label, name): body
        for block in parsed[kind]
        for label, named in block.items()
        for name, body in named.items()
    }


def test_it_gives_the_stack_the_parameters_of_the_template(parsed):
    stack = blocks(parsed, "resource")["aws_cloudformation_stack", "fanin"]
    assert set(stack["parameters"]) == set(plain_template()["Parameters"])
    assert stack["capabilities"] == ["CAPABILITY_IAM"]


def test_the_template_asks_for_no_other_capability():
    # Given what would need more: names of roles and policies, and transforms
    named = {
        name
        for name, one in plain_template()["Resources"].items()
        if one["Type"].startswith("AWS::IAM::") and {"RoleName", "ManagedPolicyName"} & set(one["Properties"])
    }
    # Then there is none
    assert named == set()
    assert "Transform" not in plain_template()


def test_it_reads_outputs_that_there_are():
    outputs = set(re.findall(r'outputs\["(\w+)"\]', FILES))
    assert outputs == {"ApiUrl", "WorkQueueUrl", "AckQueueUrl", "Bus"}
    assert outputs <= set(plain_template()["Outputs"])


def test_each_reference_leads_somewhere(parsed):
    # Given what is declared
    declared = {f"{kind}.{name}" for kind, name in blocks(parsed, "resource")}
    declared |= {f"data.{kind}.{name}" for kind, name in blocks(parsed, "data")}
    declared |= {f"local.{name}" for block in parsed["locals"] for name in block}
    declared |= {f"var.{name}" for block in parsed["variable"] for name in block}
    # And what is named, outside of labels and texts that are no templates
    named = set(re.findall(r"\b((?:data\.)?aws_\w+\.\w+|local\.\w+|var\.\w+)", FILES))
    # Then all of it is declared, and no local or variable for nothing
    assert named <= declared
    assert {one for one in declared if one.startswith(("local.", "var."))} <= named


def test_it_is_about_this_version():
    assert set(re.findall(r"fanin/(\d+\.\d+\.\d+)/", TEXT)) == {fanin.__version__}


def test_the_provider_knows_the_runtime(parsed):
    """The first version of the AWS provider that takes ``python3.14`` is 6.20 (its issue 44984)."""
    assert blocks(parsed, "resource")["aws_lambda_function", "consumer"]["runtime"] == "python3.14"
    (least,) = re.findall(r'version = ">= (\d+)\.(\d+)"', STACK)
    assert tuple(map(int, least)) >= (6, 20)


def test_the_consumer_reports_failures_and_knows_fanin(parsed):
    resources = blocks(parsed, "resource")
    source = resources["aws_lambda_event_source_mapping", "work"]
    assert source["function_response_types"] == ["ReportBatchItemFailures"]
    (environment,) = resources["aws_lambda_function", "consumer"]["environment"]
    assert set(environment["variables"]) == {"FANIN_API_URL", "FANIN_ACK_QUEUE_URL"}


def test_the_consumer_may_empty_its_queue_and_acknowledge_and_no_more(parsed):
    # Given its policy, with the queues of a stack
    arns = {"${local.work_queue}": WORK, "${local.ack_queue}": ACKS}
    document = blocks(parsed, "data")["aws_iam_policy_document", "consumer"]
    statements = [
        {
            "Effect": "Allow",
            "Action": one["actions"],
            "Resource": [arns[resource] for resource in one["resources"]],
        }
        for one in document["statement"]
    ]

    def may(action: str, resource: str) -> bool:
        return evaluate(statements, Request(action, resource)) is Decision.ALLOW

    # Then it allows this
    for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes"):
        assert may(f"sqs:{action}", WORK)
        assert not may(f"sqs:{action}", ACKS)
    assert may("sqs:SendMessage", ACKS)
    assert not may("sqs:SendMessage", WORK)
    assert not may("sqs:PurgeQueue", WORK)
