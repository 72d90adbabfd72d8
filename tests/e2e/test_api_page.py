"""docs/reference/api.md: what it does with curl, on the deployed stack."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from fanin.local import environment
from tests.docs.pages import code

pytestmark = pytest.mark.emulator


def test_curl_opens_a_batch_from_any_folder(stack, tmp_path: Path) -> None:
    # Given the commands of the page, of which the first sets the environment of the stack
    first, _, command = code("reference/api.md", "sh")[0].partition("\n")
    assert first == 'eval "$(fanin local env)"'
    # When curl runs in an empty folder
    done = subprocess.run(  # noqa: S603
        ["/bin/sh", "-eu", "-c", command],
        cwd=tmp_path,
        env=os.environ | environment(stack),
        capture_output=True,
        text=True,
        check=True,
    )
    # Then the batch is open
    assert json.loads(done.stdout)["state"] == "open"
