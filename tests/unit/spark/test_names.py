"""What ``fanin.spark`` shows."""

from __future__ import annotations

from importlib import import_module

import pyspark
import pytest

import fanin.spark

ONLY_SPARK_4 = {"register"}


@pytest.mark.parametrize("name", fanin.spark.__all__)
def test_a_name_is_what_its_home_has(name):
    if name in ONLY_SPARK_4 and pyspark.__version__ < "4":
        pytest.skip("the data source writer needs Spark 4.0")
    assert getattr(fanin.spark, name) is vars(import_module(fanin.spark._HOMES[name]))[name]
