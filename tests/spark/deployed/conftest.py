"""What tests on the stack share; one process runs all of this folder."""

import pytest

from fanin.spark.runtime.service import Service


@pytest.fixture
def service(local_environment: None) -> Service:
    """The stack, for driver and tasks."""
    return Service.from_env()
