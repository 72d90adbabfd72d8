"""The package as EMR gets it: a zip for spark-submit, on a cluster that knows fanin from nowhere else."""

import subprocess


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


def test_a_name_that_is_not_a_job_fails_the_run(submitted, outside, tmp_path):
    ran = subprocess.run(  # noqa: S603
        [*submitted("local[2]"), "nothing"],
        env=outside,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    assert "say which job: ack, audit, fan-out, report" in ran.stdout
