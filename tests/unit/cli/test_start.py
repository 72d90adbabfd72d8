"""How the command starts: its version, and what it says where its extra is missing."""

import os
import shlex
import subprocess
import sys

import pytest

from fanin import __version__
from fanin.cli.exits import ExitCode
from tests.terminals import KEYS, served


def start(
    *args: str, without: str | None = None, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, perhaps where a module is not installed."""
    code = f"""
import sys
if {without!r}:
    sys.modules[{without!r}] = None  # what Python makes of a module that is not installed
from fanin.cli import run
sys.argv = {["fanin", *args]!r}
run()
"""
    return subprocess.run(
        [sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE, text=True, check=False
    )


def redirected(words: str, where: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a shell that redirects what it writes."""
    code = f"import sys; from fanin.cli import run; sys.argv = ['fanin', *{words.split()!r}]; run()"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} {where}"
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("where", "why"), [(">/dev/full", "no space is left where it goes"), (">&-", "stdout is closed")]
)
def test_an_answer_that_cannot_be_written_is_told_in_one_line(where, why):
    done = redirected("plan 1000", where)
    assert done.returncode == ExitCode.WRONG
    assert done.stderr == f"fanin: the answer could not be written: {why}\n"


def test_whoever_stops_reading_hears_nothing_of_it():
    reading, writing = os.pipe()
    os.close(reading)
    done = start("plan", "1000", stdout=writing)
    os.close(writing)
    assert (done.returncode, "Traceback" in done.stderr, "roken" in done.stderr) == (141, False, False)


def test_without_stderr_remarks_go_nowhere():
    done = redirected("status x", "2>&-")
    assert (done.returncode, done.stdout) == (ExitCode.USAGE, "")


def test_an_answer_is_written_whatever_the_encoding_of_stdout():
    code = (
        "import sys; from fanin.cli.main import _ready_streams; _ready_streams();"
        "print('Z\\u00fcrich \\ud800')"
    )
    done = subprocess.run(
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


def test_help_loads_neither_boto3_nor_rich_nor_powertools():
    code = (
        "import sys\nfrom fanin.cli.main import app\napp(['--help'], standalone_mode=False)\n"
        "print([m for m in ('boto3', 'rich', 'pyarrow', 'aws_lambda_powertools') if m in sys.modules])"
    )
    lines = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert lines[-1] == "[]"


UNNEEDED = ("pydantic", "rich", "boto3", "s3transfer", "botocore.session", "botocore.client", "uvicorn")
UNNEEDED += ("starlette", "fanin.app.services", "fanin.client.consuming.consumer", "fanin.cli.batches")


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
