"""What tests of every kind share."""

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore import loaders
from hypothesis import settings

from fanin.client.local_stack import ENV_STATE
from fanin.local import Stack, down, emulator, environment, up
from fanin.local.stack import EMULATOR_HOME
from tests.oracle import stores
from tests.smoke.account import Deployed
from tests.smoke.trials import SMOKE

ENDPOINTS = {
    "emulator": ("FANIN_TEST_ENDPOINT", "bare_emulator"),
    "oracle": ("FANIN_SECOND_ENDPOINT", "second_store"),
}
"""Mark → the environment variable for the endpoint, and the fixture that starts one."""

# To look for garbage as often as Python does by itself takes a sixth of all CPU time.
gc.set_threshold(50_000, 20, 100)

# Hypothesis fails an example that takes more than 200 ms: on a busy machine, any. Each run tries others.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Faults are planted in tests of the soak alone, so a place that has moved is found here."""
    for item in items:
        found = getattr(item, "callspec", None)
        if found and {"where", "name", "mutant"} <= found.params.keys():
            assert hasattr(found.params["where"], found.params["name"]), item.nodeid


def pytest_collection_finish() -> None:
    """Python looks for garbage among what tests make, and not in all that was imported before."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _one_loader() -> Iterator[None]:
    """All sessions of botocore share what they read: each of them would read megabytes of JSON again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.session.create_loader", cache(loaders.create_loader))
        yield


@pytest.fixture(scope="session", autouse=True)
def _own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither find the local stacks of whoever runs them, nor leave theirs to be found."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENV_STATE, str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _interruptible() -> None:
    """Let tests interrupt what they start: background jobs of a shell, and their children, ignore SIGINT."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def bare_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An emulator with nothing deployed, for this session (with xdist, for this worker)."""
    folder = tmp_path_factory.mktemp("emulator")
    started = emulator.start(folder, emulator.install(EMULATOR_HOME, print))
    yield started.endpoint_url
    emulator.stop(folder)


@pytest.fixture(scope="session")
def second_store() -> Iterator[str]:
    """A store that speaks DynamoDB and is none of ours, for this session (with xdist, for this worker)."""
    if reason := stores.absent():
        pytest.skip(reason)
    with stores.started() as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def _endpoints(request: pytest.FixtureRequest) -> None:
    """Tests marked ``emulator`` or ``oracle`` find one, unless the environment names another."""
    for mark, (variable, started) in ENDPOINTS.items():
        if request.node.get_closest_marker(mark) and variable not in os.environ:
            os.environ[variable] = request.getfixturevalue(started)


@pytest.fixture(scope="session")
def stack_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stack")


@pytest.fixture(scope="session")
def policies_enforced() -> bool:
    """Whether the stack verifies signatures and enforces the functions' policies; e2e tests say yes."""
    return False


@pytest.fixture(scope="session")
def stack_app() -> dict[str, Any]:
    """What is deployed, as ``up`` takes it: fanin alone; e2e tests have an app of their own."""
    return {}


@pytest.fixture(scope="session")
def stack(stack_root: Path, policies_enforced: bool, stack_app: dict[str, Any]) -> Iterator[Stack | Deployed]:
    """The deployed stack; ``stack.client("sqs")`` is a boto3 client for it, with root's keys.

    Under ``make smoke`` it is the stack in the account of the profile.
    """
    if SMOKE in os.environ:
        yield Deployed.read(Path(os.environ[SMOKE]))
        return
    try:
        yield up(stack_root, auth=policies_enforced, report=print, **stack_app)
    finally:
        down(stack_root)


@pytest.fixture
def local_environment(stack: Stack | Deployed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points this process at the stack: boto3, ``Tracker.from_env()``, ``Tracker.direct()``."""
    values = stack.environment() if isinstance(stack, Deployed) else environment(stack)
    for name, value in values.items():
        monkeypatch.setenv(name, value)
