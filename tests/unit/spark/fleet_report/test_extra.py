"""Without the extra, the report says what to install; everything else works."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fanin.errors import NotConfigured
from fanin.spark.fleet_report import extra

PACKAGES = ("pygal", "jinja2", "markupsafe")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_missing_package_is_named_with_what_to_install(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(NotConfigured, match=rf"needs {package}: pip install 'fanin\[report\]'"):
        extra.check()


def test_a_module_of_a_missing_package_names_the_package_s_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygal.style", None)
    with pytest.raises(NotConfigured, match=r"pip install 'fanin\[report\]'"):
        extra.load("pygal.style")


def test_with_all_of_them_there_is_nothing_to_say():
    extra.check()
    assert extra.load("pygal").Line.__name__ == "Line"


def test_the_job_shows_its_help_without_the_extra():
    # Given an interpreter that has none of the packages
    code = f"""
import sys
sys.modules.update(dict.fromkeys({PACKAGES!r}))
from fanin.spark.jobs.report import JOB
JOB.parser().parse_args(["--help"])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert (ran.returncode, "--fill-ups" in ran.stdout) == (0, True), ran.stderr


def test_the_job_is_refused_before_it_reads_or_asks_anything(monkeypatch):
    from fanin.spark.jobs.report import JOB

    monkeypatch.setitem(sys.modules, "pygal", None)
    options = JOB.parser().parse_args(["--trips", "/nowhere", "--output", "/nowhere", "--no-scatter"])
    with pytest.raises(NotConfigured, match="needs pygal"):
        JOB.run(None, options)
