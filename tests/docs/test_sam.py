"""docs/how-to/sam.md: its template is valid, fits fanin's own, and its functions work."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cfnlint.decode import cfn_yaml

import fanin
from fanin import Tracker
from fanin.testing import InMemoryService
from tests.docs import pages
from tests.docs.plain_template import plain_template

TEXT = pages.text("how-to/sam.md")
(APP,) = pages.code("how-to/sam.md", "yaml")
CONSUMER, FINISHED = pages.code("how-to/sam.md")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("app")
    for name, code in (("consumer", CONSUMER), ("finished", FINISHED)):
        (folder / name).mkdir()
        (folder / name / "handler.py").write_text(code)
    (folder / "template.yaml").write_text(APP)
    return folder / "template.yaml"


@pytest.fixture(scope="module")
def resources(app: Path) -> dict[str, Any]:
    found: dict[str, Any] = cfn_yaml.load(str(app))["Resources"]
    return found


def test_cfn_lint_finds_nothing(app):
    lint = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "--regions", "eu-west-1", "--", str(app)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (lint.returncode, lint.stdout) == (0, "")


def test_it_names_parameters_and_outputs_that_there_are(resources):
    # Given what the app names of the nested stack
    outputs = set(re.findall(r"Fanin\.Outputs\.(\w+)", APP))
    nested = resources["Fanin"]["Properties"]["Parameters"]
    # Then the template has it
    assert outputs == {"ApiUrl", "AckQueueUrl", "WorkQueueUrl", "Bus"}
    assert outputs <= set(plain_template()["Outputs"])
    assert set(nested) == set(plain_template()["Parameters"])


def test_it_is_about_this_version():
    versions = set(re.findall(r"fanin(?:/|\[lambda\]==)(\d+\.\d+\.\d+)", TEXT)) - {"0.2.0"}
    assert versions == {fanin.__version__}


def test_the_consumer_reports_failures_and_may_only_send_to_the_ack_queue(resources):
    consumer = resources["Consumer"]["Properties"]
    (source,) = (event["Properties"] for event in consumer["Events"].values())
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert "['Fanin', 'Outputs.WorkQueueUrl']" in str(source["Queue"])
    (policy,) = consumer["Policies"]
    assert set(policy) == {"SQSSendMessagePolicy"}
    assert "['Fanin', 'Outputs.AckQueueUrl']" in str(policy)


def test_its_timeout_is_within_the_visibility_timeout_of_the_work_queue(resources):
    queues = [
        one["Properties"]
        for name, one in plain_template()["Resources"].items()
        if one["Type"] == "AWS::SQS::Queue" and name.startswith("TrackerWorkQueue")
    ]
    assert resources["Consumer"]["Properties"]["Timeout"] * 6 <= max(
        queue["VisibilityTimeout"] for queue in queues
    )


def test_its_functions_see_a_batch_to_its_end(monkeypatch, capsys):
    # Given the consumer on a queue
    service = InMemoryService()
    monkeypatch.setattr(Tracker, "from_env", lambda: service.tracker)
    consumer: dict[str, Any] = {}
    finished: dict[str, Any] = {}
    exec(compile(CONSUMER, "consumer/handler.py", "exec"), consumer)
    exec(compile(FINISHED, "finished/handler.py", "exec"), finished)
    queue = service.queue()
    service.consume(queue, consumer["handler"])
    # When a batch is sent
    with service.tracker.batch() as batch:
        batch.send(queue, [{"n": 1}, {"n": 2}], workers=1)
    # Then it is complete, and the other function can read its event
    (event,) = service.events_of(batch.id)
    finished["handler"]({"detail": event.detail}, None)
    assert capsys.readouterr().out == (
        f"imported {{'n': 1}}\nimported {{'n': 2}}\nbatch {batch.id} is done; 0 items failed\n"
    )
