"""docs/how-to/lambda-consumer.md: its app has the numbers of the page, and its function works."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fanin import Tracker
from fanin.testing import InMemoryService
from tests.docs.pages import save, text

PAGE = "how-to/lambda-consumer.md"


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the app deploys; assets are not bundled, only described."""
    folder = tmp_path_factory.mktemp("app")
    save(PAGE, folder)
    return synthesized(folder)


def synthesized(folder: Path) -> dict[str, dict[str, Any]]:
    """The resources of the template of the app in a folder, by their logical ids."""
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=folder,
        env=os.environ
        | {
            "CDK_OUTDIR": str(folder / "out"),
            "CDK_CONTEXT_JSON": json.dumps({"aws:cdk:bundling-stacks": []}),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    template = json.loads((folder / "out" / "shop.template.json").read_text())
    return dict(template["Resources"])


@pytest.mark.soak
def test_the_event_source_has_the_numbers_of_the_page(resources):
    numbers = dict(re.findall(r"^\| `(\w+)`[^|]* \| (\d+)", text(PAGE), re.MULTILINE))

    def named(kind: str, beginning: str) -> dict[str, Any]:
        (found,) = (
            one["Properties"]
            for name, one in resources.items()
            if one["Type"] == kind and re.fullmatch(beginning + "[0-9A-F]{8}", name)
        )
        return dict(found)

    source = named("AWS::Lambda::EventSourceMapping", "RowsConsumer")
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert str(source["BatchSize"]) == numbers["batch_size"]
    assert str(source["MaximumBatchingWindowInSeconds"]) == numbers["max_batching_window"]
    assert str(source["ScalingConfig"]["MaximumConcurrency"]) == numbers["max_concurrency"]
    queue = named("AWS::SQS::Queue", "RowsQueue")
    assert queue["VisibilityTimeout"] == 60 * int(numbers["visibility_timeout"])
    assert str(queue["RedrivePolicy"]["maxReceiveCount"]) == numbers["max_receive_count"]
    function = named("AWS::Lambda::Function", "Consumer")
    assert function["Timeout"] == 60 * int(numbers["timeout"])
    assert function["Timeout"] * 6 + source["MaximumBatchingWindowInSeconds"] <= queue["VisibilityTimeout"]
    assert len(function["Layers"]) == 2
    assert "FANIN_BATCHES_TABLE" in function["Environment"]["Variables"]


def test_a_message_ends_as_the_page_says(tmp_path, monkeypatch):
    # Given the function of the page, and rows of which one has no price and one cannot be read
    service = InMemoryService()
    monkeypatch.setattr(Tracker, "from_env", lambda: service.tracker)
    save(PAGE, tmp_path)
    scope: dict[str, Any] = {}
    exec((tmp_path / "consumer" / "handler.py").read_text(), scope)
    queue_url = service.queue("rows")
    with service.tracker.batch() as batch:
        batch.send(queue_url, [{"id": 1, "price": 3}, {"id": 2}, "no JSON"])
    # When they arrive
    service.consume(queue_url, scope["handler"])
    # Then one is done, one failed with its message, and one comes again
    progress = service.tracker.status(batch.id, exact=True)
    assert progress.done_min == 2
    (failed,) = service.tracker.iter_failures(batch.id)
    assert (failed.reason, failed.kept) == ("row 2 has no price", True)
