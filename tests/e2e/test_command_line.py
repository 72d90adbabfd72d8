"""The command line against the local stack, in processes of its own, as a user or a script runs it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from functools import partial
from pathlib import Path

from fanin import names
from tests.e2e.deployment import eventually

FANIN = Path(sys.executable).with_name("fanin")


def test_a_fan_out_that_is_stopped_goes_on_with_the_command_that_it_prints(stack, stack_root, tmp_path):
    # Given a fan-out of 4,000 rows to a queue of its own
    rows = 4_000
    file = tmp_path / "the rows.csv"
    file.write_text("n\n" + "".join(f"{n}\n" for n in range(rows)))
    sqs = stack.client("sqs")
    tags = {names.TRACKED_TAG: "work"}
    hidden = {"VisibilityTimeout": "3600"}  # what was received comes once, however long the rest takes
    queue = sqs.create_queue(QueueName=f"stopped-{uuid.uuid4()}", Attributes=hidden, tags=tags)["QueueUrl"]
    looks = os.pathsep.join(path for path in sys.path if path)
    given = {"PATH": f"{FANIN.parent}:/usr/bin:/bin", "HOME": str(stack_root), "PYTHONPATH": looks}
    run = subprocess.Popen(
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
    process = partial(subprocess.run, cwd=stack_root, env=given, capture_output=True, text=True, timeout=120)
    done = process(["/bin/bash", "-c", command], check=False)
    # Then it sent the rest, and every row is in the queue once, each under an item of its own
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{batch_id}  closed  {rows - before:,} sent\n"
    found: list[tuple[str, int]] = []
    while messages := sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, MessageAttributeNames=[names.ITEM_ATTRIBUTE]
    ).get("Messages"):
        for message in messages:
            item = message["MessageAttributes"][names.ITEM_ATTRIBUTE]["StringValue"]
            found.append((item, json.loads(message["Body"])["n"]))
    assert sorted(int(n) for _, n in found) == list(range(rows))
    items = [item for item, _ in found]
    assert len(set(items)) == rows
    # When all of them are done, Then the batch is complete
    acked = process([FANIN, "--local", "ack", "-"], input="\n".join(items), check=False)
    assert acked.returncode == 0, acked.stderr
    watched = process([FANIN, "--local", "watch", batch_id, "--timeout", "60s", "--json"], check=False)
    ended = json.loads(watched.stdout)
    assert watched.returncode == 0
    assert (ended["state"], ended["items"], ended["done_min"]) == ("complete", rows, rows)
