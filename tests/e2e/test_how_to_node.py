"""docs/how-to/node.md on the deployed stack, with signatures verified and policies enforced."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import boto3
import pytest

from fanin import Message
from fanin.local import environment
from fanin.names import ITEM_ATTRIBUTE
from tests.docs.pages import blocks, save
from tests.e2e.deployment import eventually
from tests.npm import node_programs
from tests.npm.packages import node

PAGE = "how-to/node.md"

Consuming = Callable[..., AbstractContextManager[subprocess.Popen[str]]]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, beside the packages of npm that it names."""
    folder = tmp_path_factory.mktemp("node")
    save(PAGE, folder)
    (folder / "node_modules").symlink_to(node_programs.modules())
    return folder


@pytest.fixture
def variables(stack, caller: boto3.Session, queue_url: str) -> dict[str, str]:
    keys = caller.get_credentials()
    assert keys is not None
    return {
        **os.environ,
        **environment(stack),
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "QUEUE_URL": queue_url,
        "NODE_OPTIONS": "--disable-warning=NodeVersionSupportWarning",
    }


@pytest.fixture
def consuming(programs: Path, variables: Mapping[str, str]) -> Consuming:
    """Runs the consumer of the page for a while, then stops it as an orchestrator does."""

    @contextmanager
    def run(acknowledge: str = "") -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [node(), "consumer.mjs"],
            cwd=programs,
            env={**variables, "ACKNOWLEDGE": acknowledge},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
                process.send_signal(signal.SIGTERM)
                said, errors = process.communicate(timeout=30)
            finally:
                process.kill()
        assert process.returncode == 0, errors
        assert said.endswith("stopped\n")

    return run


@pytest.mark.parametrize("acknowledge", ["", "now"])
def test_what_python_sends_node_handles(tracker, queue_url, subscriber, deployment, consuming, acknowledge):
    # Given a batch from Python with a row that has no price, and a message of no stack of ours
    sqs = deployment.client("sqs")
    rows = [{"id": n, "price": n} for n in range(11)]
    messages = [Message(row, attributes={"kind": "row", "raw": b"\x00\xff"}) for row in [*rows, {"id": 11}]]
    with tracker.batch() as batch:
        batch.send(queue_url, messages)
    forged = f"{batch.id}:00000000-0000-8000-8000-000000000000:0"
    sqs.send_message(
        QueueUrl=queue_url,
        MessageBody='{"id": 99, "price": 1}',
        MessageAttributes={ITEM_ATTRIBUTE: {"DataType": "String", "StringValue": forged}},
    )
    # When the consumer of the page runs
    with consuming(acknowledge):
        event = subscriber.only_event_of(batch.id)
    # Then the batch is complete, but for the failure, whose message is kept as it was sent
    assert (event["detail-type"], event["detail"]["items"], event["detail"]["failed"]) == (
        "Batch Completed",
        12,
        1,
    )
    (failed,) = tracker.iter_failures(batch.id)
    assert (failed.reason, failed.attempts, failed.source) == ("row 11 has no price", 1, queue_url)
    kept = tracker.kept_message(failed.item)
    assert kept is not None
    assert json.loads(kept.body) == {"id": 11}
    assert {name: one.value for name, one in kept.attributes.items()} == {"kind": "row", "raw": b"\x00\xff"}
    # and the forged message harmed no other: it is in the queue still, or in that of the ack queue's dead
    left = 1 if acknowledge == "now" else 0
    eventually(lambda: deployment.messages(queue_url) == left)


def test_an_error_brings_the_message_again_and_is_noted(tracker, deployment, queue_url, consuming):
    # Given a message that the consumer cannot read
    sqs = deployment.client("sqs")
    sqs.set_queue_attributes(QueueUrl=queue_url, Attributes={"VisibilityTimeout": "1"})
    with tracker.batch() as batch:
        batch.send(queue_url, ["{"])

    # When it has come more than once
    def noted() -> bool:
        found = [finding for finding in tracker.why(batch.id).findings if finding.code == "retrying"]
        return bool(found) and "JSON" in str(found[0])

    with consuming():
        eventually(noted)
    # Then it was neither marked nor deleted
    assert tracker.status(batch.id, exact=True).done_min == 0
    assert deployment.messages(queue_url) == 1


def test_node_produces_once_even_if_it_is_run_twice(tracker, queue_url, programs, variables, subscriber):
    # Given a producer that was run twice, as after a crash
    def produce() -> int:
        done = subprocess.run(
            [node(), "producer.mjs", f"catalog-{queue_url[-8:]}"],
            cwd=programs,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    batch_id = produce()
    assert produce() == batch_id
    # When a consumer in Python handles all messages
    handled: list[int] = []
    tracker.consumer(
        queue_url, lambda message: handled.append(message.json()["id"]), wait=2, skip_ended=False
    ).run(until=lambda: len(handled) == 6)
    # Then each row was sent twice and counts once
    assert sorted(handled) == [1, 1, 2, 2, 3, 3]
    event = subscriber.only_event_of(batch_id)
    assert (event["detail-type"], event["detail"]["items"]) == ("Batch Completed", 3)


def test_the_page_names_the_packages_that_were_tried():
    project = json.loads((node_programs.PROJECT / "package.json").read_text())
    (install,) = [line for line in blocks(PAGE, "sh")[0].splitlines() if line.startswith("npm install")]
    assert install.split()[2:] == [f"{name}@{version}" for name, version in project["dependencies"].items()]
