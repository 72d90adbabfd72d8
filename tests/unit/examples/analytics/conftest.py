"""The stack in memory of the tests of Spark."""

from tests.unit.spark.conftest import stack  # noqa: F401
