"""The report as ``fanin spark submit --script`` packs it."""

import os
import subprocess
import sys
from pathlib import Path

import pygal
import pyspark

import fanin
from fanin.spark.emr.packing import Script

ROOT = Path(__file__).parents[4]


def test_it_starts_and_finds_its_page_in_the_zip(tmp_path):
    # Given the command of its README
    script = Script.of(ROOT / "examples" / "fleet" / "analytics" / "job.py", [ROOT / "examples"])
    (tmp_path / "job.py").write_bytes(script.entry)
    (tmp_path / "files.zip").write_bytes(script.files or b"")
    packages = {str(Path(one.__file__).parents[1]) for one in (fanin, pygal, pyspark)}
    code = (
        "import job; from examples.fleet.analytics import html_page as page; print(page._text('report.html'))"
    )

    # When it starts where there is no checkout
    ran = subprocess.run(  # noqa: S603
        [sys.executable, "-S", "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "files.zip"), *packages])},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    # Then it has all that it imports, and its page
    assert ran.stderr == ""
    assert '<meta name="generator" content="fanin">' in ran.stdout
