"""The package as one zip."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import fanin
from fanin.errors import InvalidRequest
from fanin.spark.emr.packing import ENTRY, Package
from fanin.spark.jobs.running import USAGE

SOURCE = Path(fanin.__file__).parent
INSTALLED = {str(Path(one.__file__).parents[1]) for one in (pyspark, pa)}
"""As entries of PYTHONPATH these folders bring their packages, but no editable installation."""


def test_all_of_the_package_is_in_it_and_nothing_that_python_left_there():
    # When
    package = Package.installed()
    # Then
    with zipfile.ZipFile(io.BytesIO(package.content)) as packed:
        assert packed.testzip() is None
        found = {name: packed.read(name) for name in packed.namelist()}
    meant = [file for file in SOURCE.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    assert found == {f"fanin/{file.relative_to(SOURCE).as_posix()}": file.read_bytes() for file in meant}
    assert "fanin/spark/fleet_report/report.html" in found
    assert package.entry == found[ENTRY]


def ran(folder: Path, package: Package, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a Python that knows fanin from the zip alone."""
    (folder / "fanin.zip").write_bytes(package.content)
    return subprocess.run(  # noqa: S603
        [sys.executable, "-S", *command],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "fanin.zip"), *INSTALLED])},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )


def test_it_runs_from_the_zip_and_packs_itself_to_the_same_bytes(tmp_path):
    package = Package.installed()
    code = "from fanin.spark.emr.packing import Package; print(Package.installed().digest)"
    assert ran(tmp_path, package, "-c", code).stdout.strip() == package.digest
    assert Package(package.content + b" ", package.entry).digest != package.digest


def test_a_name_that_is_not_a_job_fails_the_run(tmp_path):
    package = Package.installed()
    (tmp_path / "job.py").write_bytes(package.entry)

    run = ran(tmp_path, package, "job.py", "nothing")

    assert run.returncode == USAGE
    assert "say which job: ack, audit, fan-out, report" in run.stderr


class TestWheels:
    def test_a_wheel_is_taken_as_it_is(self, tmp_path):
        # Given
        wheel = tmp_path / "fanin-9-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr(ENTRY, "the entry of the wheel")
        # When
        package = Package.wheel(wheel)
        # Then
        assert (package.content, package.entry) == (wheel.read_bytes(), b"the entry of the wheel")

    def test_any_other_file_is_refused(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "other.whl", "w") as packed:
            packed.writestr("other/__init__.py", "")
        (tmp_path / "fanin.whl").write_text("not a zip")
        for name in ("other", "fanin"):
            with pytest.raises(InvalidRequest, match=rf"{name}\.whl is not a wheel of fanin"):
                Package.wheel(tmp_path / f"{name}.whl")
        with pytest.raises(InvalidRequest, match="No such file"):
            Package.wheel(tmp_path / "nowhere.whl")
