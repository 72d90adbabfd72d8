"""How the command starts: its version, and what it says where its extra is missing."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from fanin import __version__
from fanin.cli.exits import ExitCode


def start(*args: str, without: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, perhaps where a module is not installed."""
    code = f"""
import sys
if {without!r}:
    sys.modules[{without!r}] = None  # what Python makes of a module that is not installed
from fanin.cli import run
sys.argv = {["fanin", *args]!r}
run()
"""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )


def test_an_answer_that_finds_no_space_is_told_in_one_line():
    code = "import sys; from fanin.cli import run; sys.argv = ['fanin', 'plan', '1000']; run()"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == ExitCode.WRONG
    assert done.stderr == "fanin: the answer could not be written: no space is left where it goes\n"


def test_an_answer_for_which_there_is_no_stdout_is_told_in_one_line():
    code = "import sys; from fanin.cli import run; sys.argv = ['fanin', 'plan', '1000']; run()"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} >&-"
    done = subprocess.run(command, shell=True, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S602
    assert done.returncode == ExitCode.WRONG
    assert done.stderr == "fanin: the answer could not be written: stdout is closed\n"


def test_without_stderr_remarks_go_nowhere():
    code = "import sys; from fanin.cli import run; sys.argv = ['fanin', 'status', 'x']; run()"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} 2>&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S602
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")


def test_an_answer_is_written_whatever_the_encoding_of_stdout():
    code = (
        "import sys; from fanin.cli.main import _ready_streams; _ready_streams();"
        "print('Z\\u00fcrich \\ud800')"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "Z\\xfcrich \\ud800\n")


def test_version():
    done = start("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"fanin {__version__}\n", "")


def test_without_its_extra_it_says_what_to_install():
    done = start("plan", "10", without="typer")
    assert (done.returncode, done.stdout) == (ExitCode.DENIED, "")
    assert done.stderr == "fanin: the command line needs typer: pip install 'fanin[cli]'\n"


def test_a_pipe_needs_no_rich():
    assert start("plan", "10", without="rich").returncode == 0


def test_another_module_that_is_missing_is_a_fault():
    done = start("plan", "10", without="fanin.cli.plan")
    assert done.returncode == 1
    assert "ModuleNotFoundError" in done.stderr
