"""The shell sessions of README.md and of the page on the API, verbatim, against the deployed stack."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fanin.local import environment

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "reference" / "api.md")
SESSIONS = [
    found
    for page in PAGES
    for found in re.findall(r"^```sh\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]
# The stack is up already, and other tests still need it.
GIVEN = (". .venv/bin/activate\n", "fanin local up\n", 'eval "$(fanin local env)"\n', "fanin local down\n")


def session(beginning_with: str) -> str:
    (found,) = (text for text in SESSIONS if text.startswith(beginning_with))
    for line in GIVEN:
        found = found.replace(line, "")
    return found


@pytest.fixture
def shell(stack, stack_root):
    """Runs a script as a user would, in the folder of the stack, with the venv on the path."""

    def run(script: str, **variables: str) -> str:
        done = subprocess.run(
            ["/bin/bash", "-eu", "-c", script],
            cwd=stack_root,
            env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(stack_root)}
            | variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_batch_by_hand(shell):
    said = shell(session(". .venv/bin/activate"))
    # Tables are separated by tabs in a pipe
    assert re.search(r"^2\.\.1000\t998\t", said, re.MULTILINE), said  # what was missing
    assert re.search(r"^state\tcomplete$", said, re.MULTILINE), said
    assert re.search(r"^done\t1000$", said, re.MULTILINE), said


def test_curl(shell, stack):
    batch = json.loads(shell(session('eval "$(fanin local env)"\ncurl'), **environment(stack)))
    assert (batch["user_key"], batch["state"]) == ("by-hand", "open")
