"""What tests of every kind share."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from fanin.local import emulator
from fanin.local.stack import EMULATOR_HOME

ENDPOINT = "FANIN_TEST_ENDPOINT"

# Hypothesis fails an example that takes more than 200 ms: on a busy machine, any.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def bare_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An emulator with nothing deployed, for this session (with xdist, for this worker)."""
    folder = tmp_path_factory.mktemp("emulator")
    started = emulator.start(folder, emulator.install(EMULATOR_HOME, print))
    yield started.endpoint_url
    emulator.stop(folder)


@pytest.fixture(autouse=True)
def _endpoint_of_emulator_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests marked ``emulator`` find one, unless the environment names another."""
    if request.node.get_closest_marker("emulator") and ENDPOINT not in os.environ:
        monkeypatch.setenv(ENDPOINT, request.getfixturevalue("bare_emulator"))
