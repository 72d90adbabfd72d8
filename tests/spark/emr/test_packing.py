"""The package as EMR gets it: a zip for spark-submit, on a cluster that knows fanin from nowhere else."""

import os
import subprocess

from fanin.spark.emr.packing import Package


def test_the_cluster_has_no_other_fanin(outside, tmp_path):
    found = subprocess.run(  # noqa: S603
        [outside["PYSPARK_PYTHON"], "-c", "import pyspark, boto3, pyarrow, fanin"],
        env=outside,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'fanin'" in found.stderr


def test_a_name_that_is_not_a_job_fails_the_run(outside, tmp_path):
    # Given the entry, and the zip on Python's path, as spark-submit puts it there
    package = Package.installed()
    entry, code = tmp_path / "job.py", tmp_path / "fanin.zip"
    entry.write_bytes(package.entry)
    code.write_bytes(package.content)

    ran = subprocess.run(  # noqa: S603
        [outside["PYSPARK_PYTHON"], str(entry), "nothing"],
        env={**outside, "PYTHONPATH": os.pathsep.join([str(code), outside["PYTHONPATH"]])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode != 0
    assert "say which job: ack, audit, fan-out, report" in ran.stderr
