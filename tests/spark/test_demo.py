"""The pipeline's demo, whole, on the flights of one carrier."""

import subprocess
import sys

import pytest


@pytest.mark.soak(long=True)  # two minutes
def test_the_pipeline_holds_what_it_promises(tmp_path):
    # Given the flights of one carrier, when the demo runs to its end
    command = [sys.executable, "-m", "examples", "pipeline", "--carriers", "HA", "--root", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    # Then every promise held, and its page is there
    assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
    assert "✗" not in ran.stdout
    # And it said first what it would do, and showed no warning of Java or Spark
    assert ran.stdout.startswith("This demo works on the flights of HA that left New York in 2013.")
    assert "WARN" not in ran.stderr
    assert "log level" not in ran.stderr
    assert ran.stdout.count("✓") == 12
    assert "<svg" in (tmp_path / "data" / "report" / "report.html").read_text("utf-8")
