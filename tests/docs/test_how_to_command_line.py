"""docs/how-to/command-line.md: its examples run in a shell, and its words are those of the program."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fanin import names
from fanin.cli.exits import ExitCode
from fanin.cli.sending import stopped
from fanin.cli.session import Session
from fanin.testing import InMemoryService
from tests.docs.pages import blocks, text
from tests.terminals import KEYS, served

PAGE = "how-to/command-line.md"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A folder with ``fanin``, for PATH."""
    script = tmp_path / "bin" / "fanin"
    script.parent.mkdir()
    script.write_text(f"#!{sys.executable}\nfrom fanin.cli import run\nrun()\n")
    script.chmod(0o755)
    return script.parent


def test_its_examples_run_one_after_the_other(program, tmp_path):
    # Given the blocks of the page, each with a line around what it prints
    script = "\n".join(f"echo '== {n}'\n{block}" for n, block in enumerate(blocks(PAGE, "sh")))
    # When a shell runs them
    with served(InMemoryService().services) as url:
        done = subprocess.run(
            ["/bin/sh", "-eu", "-c", script],
            cwd=tmp_path,
            env={
                **KEYS,
                names.ENV_API_URL: url,
                "PATH": f"{program}:/usr/bin:/bin",
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    # Then they print what the page says
    assert done.returncode == 0, done.stderr
    _, batch, fields, named, counted, joined, acked, watched, _ = re.split(r"== \d\n", done.stdout)
    header, row = (line.split("\t") for line in fields.splitlines())
    assert header == ["batch", "items", "done"]
    assert row[1:] == ["8", "5"]
    assert named == f"{row[0]} night-42\n"
    assert counted == "5\n"
    assert joined == "6\tgolden apple\tno price\n7\tred apple\tno price\n"
    assert batch.count(f"\n{row[0]}\tclosed\t") == 2
    assert acked.splitlines()[-1].split("\t")[:2] == [row[0], "complete"]
    assert watched == "not all is well: exit code 1\n"  # two items failed
    assert "8 of 8, 2 of these failed, complete" in done.stderr
    assert "complete -o default" in (tmp_path / "fanin.bash").read_text()


def test_it_has_every_exit_code():
    told = re.findall(r"^\| (\d+) \| ", text(PAGE), re.MULTILINE)
    assert told == [str(code.value) for code in ExitCode]


def test_a_stopped_fan_out_says_what_the_page_shows(capsys):
    (shown,) = blocks(PAGE, "text")
    words = ("fanout", "rows.csv", "--queue", "https://sqs.eu-west-1.amazonaws.com/123456789012/work")
    how = "Nothing is sent twice if you go on with the same input"
    stopped(Session(words=words), 245218792084582, 41_230, how, skip=41_230, key="fanout-0c4e")
    assert capsys.readouterr().err == shown
