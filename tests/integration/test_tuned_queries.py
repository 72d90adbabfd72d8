"""Queries of the patched emulator against those of the emulator as it is.

Both run in the emulator's own Python, which ``emulated_queries.py`` is given to.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fanin.local import emulator, launcher
from fanin.local.stack import EMULATOR_HOME

pytestmark = pytest.mark.emulator

SCRIPT = Path(__file__).with_name("emulated_queries.py")
TUNED = Path(launcher.__file__).with_name("tuned_queries.py")


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.soak)])
def test_they_answer_the_same_and_read_their_page_only(seed):
    # Given two emulators with the same random rows
    # When both answer the same random queries, some of them wrong
    python = emulator.install(EMULATOR_HOME, print)
    done = subprocess.run(  # noqa: S603
        [str(python), "-I", str(SCRIPT), str(TUNED), str(seed)], capture_output=True, text=True, check=False
    )
    # Then the answers are equal, and there were enough of each kind
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["queries"] - found["refused"] > 120
    assert found["refused"] > 40
    assert found["pages"] > 40
    assert found["rows"] > 300
    # And pages of ten rows cost the same whatever the size of the partition; a cursor is evaluated, too
    assert found["evaluated"] == [[10, 10, 11, 11]] * 2
    assert found["evaluated by the emulator alone"] == [100, 100, 101, 101]
    # And rows that other threads add and remove meanwhile are found
    assert found["left"] > 0
