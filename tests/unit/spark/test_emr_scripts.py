"""The package as one zip."""

import io
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import fanin
from fanin.errors import InvalidRequest
from fanin.spark.emr import ENTRY, Script

SOURCE = Path(fanin.__file__).parent
INSTALLED = {str(Path(one.__file__).parents[1]) for one in (pyspark, pa)}
"""As entries of PYTHONPATH these folders bring their packages, but no editable installation."""


def test_all_of_the_package_is_in_it_and_nothing_that_python_left_there():
    # When
    package = Script.installed()
    # Then
    with zipfile.ZipFile(io.BytesIO(package.files)) as packed:
        assert packed.testzip() is None
        found = {name: packed.read(name) for name in packed.namelist() if not name.endswith("/")}
    meant = [file for file in SOURCE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert found == {f"fanin/{file.relative_to(SOURCE).as_posix()}": file.read_bytes() for file in meant}
    assert "fanin/console/templates/overview.html" in found
    assert package.entry == found[ENTRY]


def ran(folder: Path, package: Script, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python that knows fanin from the zip alone."""
    (folder / "fanin.zip").write_bytes(package.files or b"")
    return subprocess.run(
        [sys.executable, "-S", *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "fanin.zip"), *INSTALLED])},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_it_runs_from_the_zip_and_packs_itself_to_the_same_bytes(tmp_path):
    package = Script.installed()
    relative = "import sys; sys.path.insert(0, './fanin.zip'); "  # as executors have it
    code = relative + "from fanin.spark.emr import Script; print(Script.installed().digest)"
    assert ran(tmp_path, package, "-c", code).stdout.strip() == package.digest
    assert replace(package, files=package.files + b" ").digest != package.digest


class TestWheels:
    def test_a_wheel_is_taken_as_it_is(self, tmp_path):
        # Given
        wheel = tmp_path / "fanin-9-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr(ENTRY, "the entry of the wheel")
        # When
        package = Script.wheel(wheel)
        # Then
        assert (package.files, package.entry) == (wheel.read_bytes(), b"the entry of the wheel")

    def test_any_other_file_is_refused(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "other.whl", "w") as packed:
            packed.writestr("other/__init__.py", "")
        (tmp_path / "fanin.whl").write_text("not a zip")
        for name in ("other", "fanin"):
            with pytest.raises(InvalidRequest, match=rf"{name}\.whl is not a wheel of fanin"):
                Script.wheel(tmp_path / f"{name}.whl")
        with pytest.raises(InvalidRequest, match="No such file"):
            Script.wheel(tmp_path / "nowhere.whl")


class TestScripts:
    def test_a_script_finds_what_it_needs_in_the_zip_as_beside_itself(self, tmp_path):
        # Given a script, a module, and a package with data and with a folder that lacks __init__.py
        app = tmp_path / "work" / "app"
        for name, text in {
            "sums/__init__.py": "",
            "sums/deep/add.py": "def add(a, b): return a + b",
            "sums/rates.txt": "7",
            "sums/__pycache__/add.pyc": "left by Python",
            "sums/.git/config": "hidden",
        }.items():
            (app / name).parent.mkdir(parents=True, exist_ok=True)
            (app / name).write_text(text)
        (app / "names.py").write_text("WHO = 'ann'")
        (app / "job.py").write_text(
            "from importlib.resources import files\nfrom names import WHO\nfrom sums.deep.add import add\n"
            "print(WHO, add(1, int(files('sums').joinpath('rates.txt').read_text())))"
        )
        # When it is packed, and runs where there is nothing else
        script = Script.of(app / "job.py", [app / "sums", app / "names.py"])
        (tmp_path / "job.py").write_bytes(script.entry)
        (tmp_path / "files.zip").write_bytes(script.files or b"")
        ran = subprocess.run(
            [sys.executable, "-S", "job.py"],
            env={"PYTHONPATH": str(tmp_path / "files.zip")},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        # Then it finds all of it
        assert (ran.stdout, ran.stderr) == ("ann 8\n", "")
        with zipfile.ZipFile(io.BytesIO(script.files or b"")) as packed:
            assert {name for name in packed.namelist() if not name.endswith("/")} == {
                "names.py",
                "sums/__init__.py",
                "sums/deep/add.py",
                "sums/rates.txt",
            }

    def test_its_digest_is_that_of_script_and_files(self):
        made = [Script("a", b"1", b"2"), Script("b", b"1", b"2"), Script("a", b"12"), Script("a", b"1", b"3")]
        assert [one.digest == made[0].digest for one in made] == [True, True, False, False]

    @pytest.mark.parametrize(
        ("script", "files", "why"),
        [
            ("nowhere.py", [], r"nowhere\.py: No such file"),
            ("sums", [], "sums: Is a directory"),
            ("wrong.py", [], r"wrong\.py is not a script of Python: .*line 2"),
            ("data.bin", [], r"data\.bin is not a script of Python"),
            ("fanin.py", [], r"fanin\.py would hide the package fanin"),
            ("job.py", ["nothing"], "nothing: No such file"),
            ("job.py", ["sums", "other/sums"], r"other/sums would replace sums/add\.py of another file"),
            ("job.py", ["fanin.py"], "would hide the package fanin"),
        ],
    )
    def test_what_cannot_run_is_refused(self, tmp_path, monkeypatch, script, files, why):
        monkeypatch.chdir(tmp_path)
        for folder in ("sums", "other/sums"):
            Path(folder).mkdir(parents=True)
        for name in ("job.py", "fanin.py", "sums/add.py", "other/sums/add.py"):
            Path(name).write_text("")
        Path("wrong.py").write_text("a = 1\nb = (")
        Path("data.bin").write_bytes(b"\x00\xff")
        with pytest.raises(InvalidRequest, match=why):
            Script.of(Path(script), [Path(name) for name in files])
