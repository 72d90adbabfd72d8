"""docs/how-to/containers.md: its program as a process, stopped as an orchestrator stops it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import boto3
import pytest

import fanin
from fanin.local import environment
from tests.docs.pages import save
from tests.e2e.deployment import eventually

PAGE = "how-to/containers.md"
ALIVE = "/tmp/alive"
# The work of the page prints; this one also takes time, so that the signal comes in the middle.
WORK = """
import time

def import_row(message):
    row = message.json()
    print("begin", row["id"], flush=True)
    time.sleep(0.1)
    print("end", row["id"], flush=True)
"""


@pytest.fixture
def start(
    stack, caller: boto3.Session, queue_url: str, tmp_path: Path
) -> Callable[[], subprocess.Popen[str]]:
    """Starts the consumer of the page, in a folder as the image has it."""
    save(PAGE, tmp_path)
    (tmp_path / "consumer/work.py").write_text(WORK)
    program = (tmp_path / "consumer/consumer.py").read_text()
    (tmp_path / "consumer/consumer.py").write_text(program.replace(ALIVE, str(tmp_path / "alive")))
    keys = caller.get_credentials()
    assert keys is not None

    def run() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "consumer.py"],
            cwd=tmp_path / "consumer",
            env={
                **os.environ,
                **environment(stack),
                "AWS_ACCESS_KEY_ID": keys.access_key,
                "AWS_SECRET_ACCESS_KEY": keys.secret_key,
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "QUEUE_URL": queue_url,
            },
            stdout=subprocess.PIPE,
            text=True,
        )

    return run


def test_a_signal_in_the_middle_loses_nothing_and_repeats_nothing(
    tracker, queue_url, deployment, subscriber, start, tmp_path
):
    # Given more rows than one poll receives, and a consumer that is in the middle of one
    with tracker.batch() as batch:
        batch.send(queue_url, [{"id": n} for n in range(15)])
    said: list[str] = []
    with start() as first:
        assert first.stdout is not None
        for line in first.stdout:
            said.append(line)
            if line.startswith("begin") and len(said) >= 5:
                break
        # When it gets SIGTERM
        first.send_signal(signal.SIGTERM)
        said += first.stdout.readlines()
    # Then it finishes the messages that it has received, marks them, and ends as a healthy program does
    assert first.returncode == 0
    received = int(said[-1].removeprefix("stopped after ").removesuffix(" messages\n"))
    assert 0 < received < 15
    assert len([line for line in said if line.startswith("end")]) == received
    assert tracker.status(batch.id, exact=True).done_min == received
    eventually(lambda: deployment.messages(queue_url) == 15 - received)
    # And another one does the rest: every row once, and the batch is complete
    with start() as second:
        subscriber.only_event_of(batch.id)
        second.send_signal(signal.SIGTERM)
        assert second.stdout is not None
        said += second.stdout.readlines()
    assert second.returncode == 0
    done = [int(line.split()[1]) for line in said if line.startswith("end")]
    assert sorted(done) == list(range(15))
    assert deployment.messages(queue_url) == 0


def test_the_health_check_sees_whether_the_loop_is_alive(tmp_path):
    # Given the check of the image, and of the file that the consumer touches
    save(PAGE, tmp_path)
    (found,) = re.findall(
        r"^HEALTHCHECK .*?CMD (\[.*\])$", (tmp_path / "consumer/Dockerfile").read_text(), re.MULTILINE
    )
    alive = tmp_path / "alive"
    command = [part.replace(ALIVE, str(alive)) for part in json.loads(found)]

    def healthy() -> bool:
        checked = subprocess.run([sys.executable, *command[1:]], check=False, capture_output=True)
        return checked.returncode == 0

    # When it was never touched, just now, or long ago
    before = healthy()
    alive.touch()
    now = healthy()
    long_ago = time.time() - 301
    os.utime(alive, (long_ago, long_ago))
    # Then only the second is healthy, and all places of the page have the same check
    assert (before, now, healthy()) == (False, True, False)
    for name in ("app.py", "consumer.yaml"):
        assert json.loads(found)[2] in (tmp_path / name).read_text()


def test_the_image_has_this_version(tmp_path):
    save(PAGE, tmp_path)
    assert f"fanin=={fanin.__version__}\n" in (tmp_path / "consumer/Dockerfile").read_text()
