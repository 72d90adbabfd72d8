"""The package as one zip."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import fanin
from fanin.errors import InvalidRequest
from fanin.spark.emr.packing import ENTRY, Package

SOURCE = Path(fanin.__file__).parent


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


def test_other_code_is_another():
    package = Package.installed()
    assert Package(package.content + b" ", package.entry).digest != package.digest


def test_it_runs_from_the_zip_and_packs_itself_to_the_same_bytes(tmp_path):
    # Given a process that knows fanin from the zip alone
    package = Package.installed()
    (tmp_path / "fanin.zip").write_bytes(package.content)
    code = "from fanin.spark.emr.packing import Package; print(Package.installed().digest)"
    # When
    found = subprocess.run(  # noqa: S603
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "fanin.zip")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    # Then
    assert found.stdout.strip() == package.digest


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

    def test_another_zip_is_refused(self, tmp_path):
        other = tmp_path / "other.whl"
        with zipfile.ZipFile(other, "w") as packed:
            packed.writestr("other/__init__.py", "")
        with pytest.raises(InvalidRequest, match=r"other\.whl is not a wheel of fanin"):
            Package.wheel(other)

    def test_a_file_that_is_not_a_zip_is_refused(self, tmp_path):
        (tmp_path / "fanin.whl").write_text("not a zip")
        with pytest.raises(InvalidRequest, match=r"fanin\.whl is not a wheel of fanin"):
            Package.wheel(tmp_path / "fanin.whl")

    def test_a_file_that_is_not_there(self, tmp_path):
        with pytest.raises(InvalidRequest, match="No such file"):
            Package.wheel(tmp_path / "nowhere.whl")
