"""Synthesis runs when something has changed, and only then."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from fanin.errors import LocalStackFailed
from fanin.local import synthesize

# Stands for a CDK app: counts its runs, and writes what it was given where the CDK would.
APP = """
import json, os, pathlib
out = pathlib.Path(os.environ["CDK_OUTDIR"])
out.mkdir(parents=True, exist_ok=True)
runs = out / "runs"
runs.write_text(str(int(runs.read_text()) + 1 if runs.exists() else 1))
(out / "context").write_text(os.environ["CDK_CONTEXT_JSON"])
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    script = tmp_path / "project" / "app.py"
    (script.parent / "infra").mkdir(parents=True)
    script.write_text(APP)
    (script.parent / "infra" / "stack.py").write_text("one = 1")
    return script


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(app: Path, out: Path, **context: object) -> bool:
    return synthesize(app, out, inputs=[app, app.parent / "infra"], context=context)


def test_first_time_runs_with_the_context(app, out):
    assert run(app, out, local=True)
    assert json.loads((out / "context").read_text()) == {"local": True}


def test_unchanged_does_not_run(app, out):
    run(app, out)
    assert not run(app, out)
    assert (out / "runs").read_text() == "1"


@pytest.mark.parametrize("name", ["app.py", "infra/stack.py", "infra/new.py"])
def test_an_edit_runs(app, out, name):
    run(app, out)
    edited = app.parent / name
    edited.write_text((edited.read_text() if edited.exists() else "") + "\n# edited")
    assert run(app, out)


def test_a_file_that_went_runs(app, out):
    run(app, out)
    (app.parent / "infra" / "stack.py").unlink()
    assert run(app, out)


def test_other_context_runs(app, out):
    run(app, out, lifetime=60)
    assert run(app, out, lifetime=61)


@pytest.mark.parametrize("name", ["infra/__pycache__/stack.cpython-311.pyc", "infra/x.egg-info/PKG-INFO"])
def test_what_python_makes_itself_is_no_edit(app, out, name):
    run(app, out)
    made = app.parent / name
    made.parent.mkdir()
    made.touch()
    assert not run(app, out)


def test_failure_says_what_the_app_said_and_runs_again(app, out):
    # Given an assembly, When the app breaks, Then the error ends with what it said
    run(app, out)
    app.write_text("raise SystemExit('setting lifetime is -1')")
    with pytest.raises(LocalStackFailed, match="setting lifetime is -1"):
        run(app, out)
    # And once mended, what was there is not taken for the result of the broken one
    app.write_text(APP)
    assert run(app, out)


def test_an_interruption_ends_all_that_runs_and_half_an_asset_is_not_taken_for_the_whole(
    app, out, monkeypatch
):
    # Given an app that has begun an asset, with a process of its own
    app.write_text(
        APP
        + "import subprocess\n(out / 'asset.half').mkdir()\nprocess = subprocess.Popen(['sleep', '600'])\n"
        "(out / 'pids').write_text(f'{os.getpid()} {process.pid}')\nprocess.wait()\n"
    )

    def interrupted(_process: subprocess.Popen[str]) -> None:
        while not (out / "pids").exists():
            time.sleep(0.01)
        raise KeyboardInterrupt

    # When it is interrupted
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "communicate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(app, out)
    # Then nothing of it runs any more
    for pid in (out / "pids").read_text().split():
        while state(pid).strip("Z+"):
            time.sleep(0.01)
    # And the next run begins anew
    app.write_text(APP)
    assert run(app, out)
    assert not (out / "asset.half").exists()


def state(pid: str) -> str:
    """The state of a process: empty if there is none, Z if it has ended and nobody has asked how."""
    command = ["ps", "-o", "stat=", "-p", pid]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
