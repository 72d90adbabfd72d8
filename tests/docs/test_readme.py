"""The documentation is code: its blocks run, its commands exist, its tables are the program's own."""

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from typer.testing import CliRunner

from fanin import Tracker, names
from fanin.cli.main import app
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


FIRST_SCREEN, LIBRARY, CONSUMER = blocks(README, "python")


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
        exec(FIRST_SCREEN, scope)
        # When the messages arrive at its handler
        answer = scope["handler"](lambda_event(queue_url))
        # Then every row is in, and the batch is complete
        assert answer == {"batchItemFailures": []}
        assert sorted(imported, key=lambda row: row["n"]) == rows
        assert tracker.status(scope["batch"].id).batch.state is State.COMPLETE

    def test_first_screen_is_ten_lines(self):
        assert len([line for line in FIRST_SCREEN.splitlines() if line]) <= 10

    def test_library(self):
        exec(LIBRARY, {})

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
        exec(CONSUMER, scope)
        with tracker.batch() as batch:
            batch.send(queue_url, [{"n": "1"}, {"n": "one"}])
        # When it gets a good row and a malformed one
        scope["handler"](lambda_event(queue_url))
        # Then the queue has an ack and a failure
        (message,) = sqs.receive_message(QueueUrl=ack_queue_url)["Messages"]
        body = json.loads(message["Body"])
        done, failed = body["marks"]
        assert (type(done), failed.keys() >= {"failed", "message"}) == (str, True)
        assert [failed["reason"]] == ["invalid literal for int() with base 10: 'one'"]


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


def test_its_costs_are_those_of_the_plan():
    scattered = json.loads(fanin("plan", "1e6", "--json"))
    dollars = {one["way"]: f"{one['dollars']:.2f}" for one in scattered["ways"]}
    text = " ".join(README.split())
    https = "HTTPS, one item a call"
    assert (min(dollars.values()), max(dollars.values(), key=float)) == ("0.00", dollars[https])
    assert f"between $0.00 (one process marks them as a range) and ${dollars[https]}" in text
    assert f"costs ${dollars['HTTPS, 10 items a call']} by default" in text
    assert f"${dollars['ack queue, 10 items a message']} through the ack queue" in text
    assert f"cost about ${scattered['idle_month']['dollars']:.0f} a month" in text


def test_it_is_short():
    assert len(README.splitlines()) <= 240


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
