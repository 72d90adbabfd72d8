"""docs/tutorial/first-consumer.md, step by step, on the deployed stack; then its app, deployed beside it."""

import os
import shlex
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from fanin import Tracker, names
from fanin.domain.batch import State
from fanin.local import aws, emulator, environment
from fanin.local.aws import api_url
from fanin.local.deploy import deploy
from fanin.local.stack import CONTEXT, EMULATOR_HOME
from fanin.local.synth import synthesize
from tests.docs.pages import save, steps
from tests.e2e.deployment import eventually

pytestmark = pytest.mark.soak

PAGE = "tutorial/first-consumer.md"
# The stack is up already, another test still needs it, and the environment leads to it.
GIVEN = ("python3 -m venv", ". venv/", "pip install", "uv pip", "fanin local ", "eval ")


def walk() -> str:
    """One script of what a reader does on this machine, in order.

    Files are saved, commands are run; where the page quotes a line, a reader sees it before going on.
    """
    script = ["said=$PWD/said; exec > $said"]
    for step in steps(PAGE):
        if step.saved_as:
            script.append(f"cat > {step.saved_as} <<'END OF FILE'\n{step.content}END OF FILE")
        elif step.language == "sh":
            script += [line for line in step.content.splitlines() if not line.startswith(GIVEN)]
        elif step.quoted:
            script.append(f"until grep -qF {shlex.quote(step.content)} $said; do sleep 0.1; done")
    return "\n".join(script)


def where_python_looks() -> dict[str, str]:
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }


def test_the_steps_print_what_the_page_says(stack, tmp_path):
    # Given an empty folder, and a queue that no other test uses
    tags = {names.TRACKED_TAG: "work"}
    queue_url = stack.client("sqs").create_queue(QueueName=f"first-{uuid.uuid4()}", tags=tags)["QueueUrl"]
    variables = environment(stack)
    assert variables[names.ENV_WORK_QUEUE_URL] == stack.work_queue_url
    # When a reader follows the page
    script = f"trap 'kill $(jobs -p) 2>&-' EXIT\n{walk()}"
    done = subprocess.run(
        ["/usr/bin/timeout", "180", "/bin/bash", "-eu", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **variables, names.ENV_WORK_QUEUE_URL: queue_url, **where_python_looks()},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    # Then what was quoted is printed, in this order, and row 7 is imported once, after the others
    said = (tmp_path / "said").read_text()
    assert done.returncode == 0, said + done.stderr
    quoted = [step.content for step in steps(PAGE) if step.quoted]
    places = [said.find(line) for line in quoted]
    assert len(quoted) == 3
    assert -1 not in places, said
    assert places == sorted(places), said
    imported = [line for line in said.splitlines() if line.startswith("imported row")]
    assert sorted(imported[:-1]) == sorted(f"imported row {n}" for n in range(1, 21) if n != 7)
    assert imported[-1] == "imported row 7 for 0"
    assert "row 7 has no price" in said
    assert '{"id": 7}' in said


def test_the_same_work_runs_as_a_function(tmp_path, monkeypatch):
    # Given the app of the page with the work beside its handler, deployed where policies are enforced
    save(PAGE, tmp_path)
    (tmp_path / "consumer" / "work.py").write_text((tmp_path / "work.py").read_text())
    synthesize(tmp_path / "app.py", tmp_path / "out", inputs=[tmp_path / "app.py"], context=CONTEXT)
    running = emulator.start(tmp_path, emulator.install(EMULATOR_HOME, print), auth=True)
    try:
        outputs = deploy(tmp_path / "out", running.endpoint_url)
        variables = {
            "AWS_ENDPOINT_URL": running.endpoint_url,
            "AWS_DEFAULT_REGION": aws.REGION,
            "AWS_ACCESS_KEY_ID": aws.ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": aws.SECRET_KEY,
            names.ENV_API_URL: api_url(running.endpoint_url, outputs["ApiUrl"]),
            names.ENV_WORK_QUEUE_URL: outputs["RowsUrl"],
        }
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        # When the producer of the page sends its rows
        produced = subprocess.run(
            [sys.executable, "producer.py"],
            cwd=tmp_path,
            env={**os.environ, **where_python_looks()},
            capture_output=True,
            text=True,
            check=True,
        )
        # Then the function does all of them
        batch_id, tracker = int(produced.stdout), Tracker.from_env()
        eventually(lambda: tracker.status(batch_id).batch.state is State.COMPLETE)
        assert tracker.status(batch_id).batch.failed == 0
    finally:
        emulator.stop(tmp_path)
