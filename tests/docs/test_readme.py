"""The documentation is code: its blocks run, its commands exist, its tables are the program's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from fanin import Tracker, names
from fanin.cli.main import app
from fanin.domain import ids, limits
from fanin.domain.batch import State
from fanin.errors import ItemFailed
from tests.docs.anchors import anchors

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [
    page
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
    if ".venv" not in page.parts
]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def fanin(*args: str) -> Any:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    return result.stdout


FIRST_SCREEN, CONSTRUCTS, LIBRARY, CONSUMER = blocks(README, "python")


@pytest.fixture
def queue_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield boto3.client("sqs").create_queue(QueueName="rows")["QueueUrl"]


def lambda_event(queue_url: str) -> dict[str, Any]:
    """What Lambda would hand to a consumer of the queue."""
    answer = boto3.client("sqs").receive_message(
        QueueUrl=queue_url, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
    )
    return {
        "Records": [
            {
                "messageId": message["MessageId"],
                "body": message["Body"],
                "attributes": {},
                "messageAttributes": {
                    name: {"stringValue": value["StringValue"], "dataType": value["DataType"]}
                    for name, value in message["MessageAttributes"].items()
                },
                "eventSource": "aws:sqs",
                "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:rows",
            }
            for message in answer["Messages"]
        ]
    }


class TestExamplesRun:
    def test_first_screen(self, queue_url, monkeypatch):
        # Given the first example, as it stands, on a ledger in memory
        tracker = Tracker(Tracker.in_memory().services)
        monkeypatch.setattr(Tracker, "from_env", lambda: tracker)
        imported: list[dict[str, int]] = []
        rows = [{"n": n} for n in range(7)]
        scope: dict[str, Any] = {"queue_url": queue_url, "rows": rows, "import_row": imported.append}
        exec(FIRST_SCREEN, scope)  # noqa: S102

        # When the messages arrive at its handler
        answer = scope["handler"](lambda_event(queue_url))

        # Then every row is in, and the batch is complete
        assert answer == {"batchItemFailures": []}
        assert sorted(imported, key=lambda row: row["n"]) == rows
        assert tracker.status(scope["batch"].id).batch.state is State.COMPLETE

    def test_first_screen_is_ten_lines(self):
        assert len([line for line in FIRST_SCREEN.splitlines() if line]) <= 10

    def test_library(self):
        exec(LIBRARY, {})  # noqa: S102  its own asserts are the test

    def test_consumer_gives_a_malformed_row_up(self, queue_url):
        # Given a consumer that acknowledges through a queue
        sqs = boto3.client("sqs")
        ack_queue_url = sqs.create_queue(QueueName="acks")["QueueUrl"]
        tracker = Tracker(Tracker.in_memory().services, ack_queue_url=ack_queue_url)
        scope: dict[str, Any] = {
            "tracker": tracker,
            "ItemFailed": ItemFailed,
            "import_row": lambda row: int(row["n"]),
        }
        exec(CONSUMER, scope)  # noqa: S102
        with tracker.batch() as batch:
            batch.send(queue_url, [{"n": "1"}, {"n": "one"}])

        # When it gets a good row and a malformed one
        scope["handler"](lambda_event(queue_url))

        # Then the queue has an ack and a failure
        (message,) = sqs.receive_message(QueueUrl=ack_queue_url)["Messages"]
        body = json.loads(message["Body"])
        assert len(body["items"]) == 1
        assert [failure["reason"] for failure in body["failures"]] == [
            "invalid literal for int() with base 10: 'one'"
        ]

    def test_constructs(self, tmp_path):
        # Given the app as it stands, and a consumer; assets are not bundled, only described
        (tmp_path / "app.py").write_text(CONSTRUCTS)
        (tmp_path / "consumer").mkdir()
        (tmp_path / "consumer" / "handler.py").write_text(FIRST_SCREEN)
        environment = os.environ | {
            "CDK_OUTDIR": str(tmp_path / "out"),
            "CDK_CONTEXT_JSON": json.dumps({"aws:cdk:bundling-stacks": [], "prefix": "mine"}),
            "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,20,22",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }

        # When it runs
        done = subprocess.run(
            [sys.executable, "app.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

        # Then it has a stack with a rule on fanin's bus, which follows the settings of the context
        assert done.returncode == 0, done.stderr
        template = json.loads((tmp_path / "out" / "shop.template.json").read_text())["Resources"].values()
        rules = [one["Properties"] for one in template if one["Type"] == "AWS::Events::Rule"]
        pattern = {"source": [names.EVENT_SOURCE], "detail-type": [names.DETAIL_TYPES["complete"]]}
        assert pattern in [rule.get("EventPattern") for rule in rules]
        buses = [one["Properties"]["Name"] for one in template if one["Type"] == "AWS::Events::EventBus"]
        assert buses == ["mine"]

    def test_constructs_are_a_small_app(self):
        assert len([line for line in CONSTRUCTS.splitlines() if line]) <= 25


class TestCommandsExist:
    @pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
    def test_make_targets(self, page):
        targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert named <= targets

    def test_first_commands_are_two(self):
        assert re.findall(r"^(make \w+)", blocks(README, "sh")[0], re.MULTILINE) == ["make demo", "make test"]

    @pytest.mark.parametrize(
        "line",
        sorted(
            {
                line
                for code in (*blocks(README, "sh"), *re.findall(r"`([^`\n]+)`", README))
                for line in re.findall(r"(?:^|\$\()fanin ([a-z][^)\n]*)", code, re.MULTILINE)
            }
        ),
    )
    def test_fanin(self, line):
        words = line.partition("#")[0].split()
        commands = words[: 2 if words[0] in ("local", "spark") else 1]
        described = fanin(*commands, "--help")
        options = takewhile(lambda word: word != "--", words)
        for option in (word for word in options if word.startswith("--")):
            assert option in described

    def test_environment(self):
        known = {value for name, value in vars(names).items() if name.startswith("ENV_")}
        assert set(re.findall(r"FANIN_[A-Z_]+", README)) <= known

    def test_version_of_the_cdk_is_one(self):
        said = {version for page in PAGES for version in re.findall(r"aws-cdk@(\S+?)[` ]", page.read_text())}
        assert said == {"2.1148.1"}


class TestTablesAgree:
    def test_api(self):
        paths = json.loads(fanin("openapi"))["paths"]
        served = {
            (verb.upper(), path)
            for path, operations in paths.items()
            for verb in operations
            if path.startswith(names.API_ROOT) and path != f"{names.API_ROOT}/openapi.json"
        }
        assert set(re.findall(r"^\| `([A-Z]+) (\S+)` \|", README, re.MULTILINE)) == served

    def test_costs(self):
        scattered, neighbours = (
            json.loads(fanin("plan", "1e6", "--order", order, "--json"))
            for order in ("scattered", "neighbours")
        )
        planned = [
            (one["way"], f"{one['writes']:,}", f"{one['dollars']:.2f}", f"{other['dollars']:.2f}")
            for kind in ("ways", "alternatives")
            for one, other in zip(scattered[kind], neighbours[kind], strict=True)
        ]
        rows = re.findall(r"^\| ([^|]+) \| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", README, re.MULTILINE)
        assert rows == planned
        assert f"costs about ${scattered['idle_month']['dollars']:.0f} a month" in " ".join(README.split())

    def test_limits(self):
        for said in (
            f"| {limits.MAX_IDS:,}, {limits.MAX_RANGES:,}, {limits.MAX_FAILURES:,} (",
            f"| pending items of a bounded batch | {limits.MAX_LIMIT:,} |",
            f"| 1 minute to {limits.MAX_LIFETIME // 86_400} days;",
            f"| {limits.MAX_METADATA} pairs of {limits.MAX_METADATA_KEY} and {limits.MAX_METADATA_VALUE} ch",
        ):
            assert said in README
        assert (limits.MIN_LIFETIME, ids.MAX_ITEMS, ids.MAX_COUNT) == (60, 2**40, 2**32 - 1)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text()), target


def test_the_test_of_links_can_fail(tmp_path):
    page = tmp_path / f"{uuid4()}.md"
    page.write_text("[nowhere](nowhere.md)")
    with pytest.raises(AssertionError, match=r"nowhere\.md"):
        test_links_lead_somewhere(page)
