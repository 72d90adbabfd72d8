"""What users import from ``fanin.spark``, and what that costs."""

import subprocess
import sys
from pathlib import Path

import pytest

import fanin.spark


def loaded_by(code: str) -> set[str]:
    """The modules that a new process has after some code."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("name", fanin.spark.__all__)
def test_every_name_is_what_its_module_has(name):
    if name == "register":
        pytest.importorskip("pyspark.sql.datasource", reason="Spark before 4.0 has no Python data sources")
    assert getattr(fanin.spark, name) is not None
    assert name in dir(fanin.spark)


def test_no_name_hides_a_package():
    folder = Path(fanin.spark.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & set(fanin.spark.__all__)


def test_importing_the_package_does_not_import_pyspark():
    assert not {"pyspark", "numpy", "boto3"} & loaded_by("import fanin.spark")


def test_a_name_does_not_import_the_data_source_which_spark_3_5_lacks():
    modules = loaded_by("from fanin.spark import acknowledge, fan_out, with_body")
    assert "pyspark.sql" in modules
    assert "fanin.spark.fanout.sink" not in modules
