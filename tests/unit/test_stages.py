"""What developers run: stages have every test, and say what became of it; whoever ends one ends all of it."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests import soak
from tests.__main__ import CORES, STAGES

ROOT = Path(__file__).parents[2]


def test_every_file_of_tests_is_in_one_stage_or_in_the_soak(monkeypatch):
    monkeypatch.chdir(ROOT)
    paths = [Path(path) for stage in STAGES for path in stage.paths]
    staged = Counter(file for path in paths for file in ([path], path.rglob("test_*.py"))[path.is_dir()])
    assert [file for file, times in staged.items() if times > 1] == []
    # pytest would take files of other names, too, where they are named
    found = {file for pattern in ("test_*.py", "*_test.py") for file in Path("tests").rglob(pattern)}
    assert found - set(staged) <= {Path(place) for place in soak.places()}


def run(folder, stage, *bodies):
    """Run a stage of a checkout that has these tests alone."""
    (folder / "tests" / stage).mkdir(parents=True)
    for name in ("pyproject.toml", "tests/__main__.py", "tests/cpu.py"):
        shutil.copy(ROOT / name, folder / name)
    for number, body in enumerate(bodies):
        (folder / "tests" / stage / f"test_{number}.py").write_text(body)
    command = [sys.executable, "-m", "tests", stage]
    variables = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)


def test_each_file_of_a_stage_runs_once_and_each_that_fails_is_named(tmp_path):
    # Given a file that fails, one that cannot be imported, and so many more that each process has one of them
    good = "def test_it():\n    with open('ran', 'a') as ran: print(__file__, file=ran)"
    # When
    done = run(tmp_path, "unit", "def test_it(): assert False", "import nowhere", *[good] * CORES)
    # Then
    assert done.returncode == 1
    assert "\nfailed: tests/unit/test_0.py::test_it\n" in done.stdout
    assert "\nfailed: tests/unit/test_1.py\n" in done.stdout
    assert f"\n{CORES} passed, 2 failed; " in done.stdout
    ran = (tmp_path / "ran").read_text().split()
    assert len(set(ran)) == len(ran) == CORES


def test_a_stage_that_a_test_ends_has_failed_whatever_its_exit_code(tmp_path):
    leaving = "import pytest\ndef test_it(): pass\ndef test_more(): pytest.exit('early', returncode=0)"
    done = run(tmp_path, "spark", leaving)
    assert done.returncode == 1
    assert "\nspark     broke off: see above\n0 passed, 1 failed; " in done.stdout


def test_a_stage_ends_if_one_of_its_processes_dies(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin")
    done = run(tmp_path, "e2e", "import os\ndef test_it(): os._exit(1)\ndef test_more(): pass")
    assert done.returncode == 1
    assert "crashed while running 'tests/e2e/test_0.py::test_it'\n" in done.stdout
    assert "\ne2e       broke off: see above\n0 passed, 1 failed; " in done.stdout


def test_whoever_ends_the_tests_ends_pytest_as_ctrl_c_does(tmp_path):
    ended = "try: os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)\n    finally: open('ended', 'w')"
    done = run(tmp_path, "spark", f"import os, signal, time\ndef test_it():\n    {ended}")
    assert (done.returncode, done.stderr) == (1, "interrupted; nothing is running\n")
    assert (tmp_path / "ended").exists()
