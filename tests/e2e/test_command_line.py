"""The command line against the local stack, in processes of its own, as a user or a script runs it."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from fanin import names
from tests.e2e.deployment import eventually
from tests.spans import spans

FANIN = Path(sys.executable).with_name("fanin")


@pytest.fixture
def begin(stack, stack_root) -> Callable[..., subprocess.Popen]:
    """Starts ``fanin --local --json …`` in the folder of the stack."""

    def start(*arguments: object) -> subprocess.Popen:
        return subprocess.Popen(  # noqa: S603
            [FANIN, "--local", "--json", *map(str, arguments)],
            cwd=stack_root,
            env={"PATH": str(FANIN.parent), "HOME": str(stack_root)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.fixture
def fanin(begin):
    """Runs a command to its end; returns its answer, a problem if the exit code is not 0."""

    def run(*arguments: object, stdin: str = "", exits: int = 0):
        process = begin(*arguments)
        said, complained = process.communicate(stdin, timeout=60)
        assert process.returncode == exits, said + complained
        return json.loads(complained if exits else said)

    return run


def test_a_batch_by_hand(begin, fanin, subscriber):
    # Given a batch with a group
    batch_id = fanin("open", "--user-key", "by-hand", "--meta", "from=terminal")["batch_id"]
    group = fanin("add", batch_id, 1_000)
    items = [f"{batch_id}:{group['id']}:{n}" for n in range(group["upto"])]

    # When items are acked, from stdin and as a range
    (receipt,) = fanin("ack", "-", stdin="\n".join(items[:4]))["batches"]
    assert (receipt["first"], receipt["state"]) == (4, "open")
    fanin("ack", "--range", f"{batch_id}:{group['id']}:3..999")

    # Then missing tells the rest
    missing = fanin("missing", batch_id)["ranges"]
    assert spans(missing) == [[999, 1_000]]

    # When it is closed, watched, and the rest is done under the ids that missing gave
    assert fanin("close", batch_id)["state"] == "closed"
    assert fanin("add", batch_id, 1, exits=4)["type"] == "urn:fanin:problem:batch-closed"
    watch = begin("watch", batch_id, "--every", "0.2")
    fanin("ack", *(arg for span in missing for arg in ("--range", span["group"])))

    # Then the watch ends with it, and all is well
    said, _ = watch.communicate(timeout=60)
    assert (watch.returncode, json.loads(said)["state"]) == (0, "complete")
    assert subscriber.only_event_of(batch_id)["detail"]["metadata"] == {"from": "terminal"}


def test_of_a_batch_that_is_not_there(fanin):
    assert fanin("status", 1, exits=3)["type"] == "urn:fanin:problem:batch-not-found"


def test_a_fan_out_that_is_stopped_goes_on_with_the_command_that_it_prints(stack, stack_root, tmp_path):
    # Given a fan-out of 4,000 rows to a queue of its own
    rows = 4_000
    file = tmp_path / "the rows.csv"
    file.write_text("n\n" + "".join(f"{n}\n" for n in range(rows)))
    sqs = stack.client("sqs")
    tags = {names.TRACKED_TAG: "work"}
    queue = sqs.create_queue(QueueName=f"stopped-{uuid.uuid4()}", tags=tags)["QueueUrl"]
    looks = os.pathsep.join(path for path in sys.path if path)
    given = {"PATH": f"{FANIN.parent}:/usr/bin:/bin", "HOME": str(stack_root), "PYTHONPATH": looks}
    run = subprocess.Popen(  # noqa: S603
        [FANIN, "--local", "fanout", str(file), "--queue", queue],
        cwd=stack_root,
        env=given,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    # When it is interrupted in the middle
    def waiting() -> int:
        answer = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"])
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    eventually(lambda: waiting() >= 200)
    run.send_signal(signal.SIGINT)
    said, complained = run.communicate(timeout=60)
    assert (run.returncode, said) == (130, ""), complained
    before = waiting()
    assert 200 <= before < rows
    (command,) = (line.strip() for line in complained.splitlines() if line.startswith("  fanin "))
    (batch_id,) = {words[1] for words in map(str.split, complained.splitlines()) if words[:1] == ["batch"]}
    assert shlex.quote(str(file)) in command

    # And the command that it printed runs in a shell, as it stands
    done = subprocess.run(  # noqa: S603
        ["/bin/bash", "-c", command],
        cwd=stack_root,
        env=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    # Then it sent the rest, and every row is in the queue once, each under an item of its own
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{batch_id}  closed  {rows - before:,} sent\n"
    found: list[tuple[str, int]] = []
    while messages := sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=[names.ITEM_ATTRIBUTE]
    ).get("Messages"):
        found += [
            (
                message["MessageAttributes"][names.ITEM_ATTRIBUTE]["StringValue"],
                json.loads(message["Body"])["n"],
            )
            for message in messages
        ]
    assert sorted(int(n) for _, n in found) == list(range(rows))
    items = [item for item, _ in found]
    assert len(set(items)) == rows

    # When all of them are done, Then the batch is complete
    acked = subprocess.run(  # noqa: S603
        [FANIN, "--local", "ack", "-"],
        cwd=stack_root,
        env=given,
        input="\n".join(items),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert acked.returncode == 0, acked.stderr
    watched = subprocess.run(  # noqa: S603
        [FANIN, "--local", "watch", batch_id, "--timeout", "60s", "--json"],
        cwd=stack_root,
        env=given,
        capture_output=True,
        text=True,
        check=False,
    )
    ended = json.loads(watched.stdout)
    assert (watched.returncode, ended["state"], ended["items"], ended["done_min"]) == (
        0,
        "complete",
        rows,
        rows,
    )
