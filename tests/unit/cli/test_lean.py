"""A command that asks the API loads nothing that it does not need."""

import os
import subprocess
import sys

import pytest

from tests.unit.cli.terminals import KEYS, served

UNNEEDED = ("pydantic", "rich", "boto3", "s3transfer", "botocore.session", "botocore.client", "uvicorn")
UNNEEDED += ("starlette", "fanin.app.services", "fanin.client.consuming.handler", "fanin.cli.batches")


@pytest.mark.parametrize("command", ["status", "failures"])
def test_a_command_loads_only_what_it_needs(tracker, command):
    code = f"""
import sys
from fanin.cli import run
sys.argv = ["fanin", "--api-url", sys.argv[1], "{command}", "{tracker.open().batch_id}"]
try:
    run()
except SystemExit as end:
    assert not end.code, end.code
print([name for name in {UNNEEDED!r} if name in sys.modules])
"""
    with served(tracker.services) as url:
        said = subprocess.run(
            [sys.executable, "-c", code, url],
            env={**os.environ, **KEYS},
            capture_output=True,
            text=True,
            check=False,
        )
    assert said.stdout.splitlines()[-1:] == ["[]"], said.stdout + said.stderr
