"""Up, down and status: each does what is left to do, with emulator, synthesis and deployment replaced."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from fanin.client import local_stack
from fanin.errors import LocalStackFailed, NotConfigured
from fanin.local import stack
from fanin.local.emulator import Emulator
from fanin.local.stack import CONTEXT, down, status, up
from tests.unit.local_stacks import OUTPUTS


@dataclass
class Machine:
    """In place of processes and deployments: what runs, and what was done."""

    running: Emulator | None = None
    healthy: bool = True
    fingerprint: str = "f1"
    fails: bool = False
    done: list[str] = field(default_factory=list)
    contexts: list[dict[str, Any]] = field(default_factory=list)
    pids: int = 100

    def start(self, folder: Path, python: Path, *, port: int | None, auth: bool) -> Emulator:
        self.pids += 1
        self.done.append("start")
        self.running, self.healthy = Emulator(self.pids, port or 4566, auth), True
        return self.running

    def stop(self, folder: Path) -> bool:
        was = self.running is not None
        if was:
            self.done.append("stop")
        self.running = None
        return was

    def synthesize(self, app: Path, assembly: Path, *, inputs: Any, context: Any, report: Any) -> bool:
        report("synthesizing")
        self.contexts.append(dict(context))
        return True

    def deploy(self, assembly: Path, endpoint_url: str) -> dict[str, str]:
        self.done.append("deploy")
        if self.fails:
            raise LocalStackFailed("stack fanin is ROLLBACK_COMPLETE")
        return OUTPUTS


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(stack.emulator, "running", lambda folder: machine.running)
    monkeypatch.setattr(stack.emulator, "start", machine.start)
    monkeypatch.setattr(stack.emulator, "stop", machine.stop)
    monkeypatch.setattr(stack.emulator, "install", lambda home, report: home / "bin" / "python")
    monkeypatch.setattr(Emulator, "healthy", lambda self: machine.healthy)
    monkeypatch.setattr(stack, "synthesize", machine.synthesize)
    monkeypatch.setattr(stack, "fingerprint", lambda assembly: machine.fingerprint)
    monkeypatch.setattr(stack, "deploy", machine.deploy)
    return machine


class TestUp:
    def test_the_first_time_starts_and_deploys(self, machine, tmp_path):
        said: list[str] = []
        deployed = up(tmp_path, port=4599, auth=True, report=said.append)
        assert machine.done == ["start", "deploy"]
        assert (deployed.port, deployed.auth, deployed.fingerprint) == (4599, True, "f1")
        assert deployed.bus == "the Bus"
        assert local_stack.read(tmp_path) == deployed
        assert "deploying" in said

    def test_again_does_nothing(self, machine, tmp_path):
        first = up(tmp_path, port=4599, auth=True)
        machine.done.clear()
        assert up(tmp_path) == up(tmp_path, port=4599, auth=True) == first
        assert machine.done == []

    def test_an_edit_deploys_to_the_running_emulator(self, machine, tmp_path):
        first = up(tmp_path)
        machine.done.clear()
        machine.fingerprint = "f2"
        assert up(tmp_path) == replace(first, fingerprint="f2")
        assert machine.done == ["deploy"]

    @pytest.mark.parametrize("damage", ["{", "{}", "[]"])
    def test_a_description_that_is_damaged_or_foreign_deploys_again(self, machine, tmp_path, damage):
        first = up(tmp_path)
        machine.done.clear()
        (tmp_path / ".fanin" / "local.json").write_text(damage)
        assert up(tmp_path) == first
        assert machine.done == ["deploy"]

    def test_an_emulator_that_died_is_started_and_deployed_to(self, machine, tmp_path):
        first = up(tmp_path)
        machine.done.clear()
        machine.running = None
        assert up(tmp_path).pid != first.pid
        assert machine.done == ["start", "deploy"]

    def test_an_emulator_that_does_not_answer_is_replaced(self, machine, tmp_path):
        up(tmp_path)
        machine.done.clear()
        machine.healthy = False
        up(tmp_path)
        assert machine.done == ["stop", "start", "deploy"]

    @pytest.mark.parametrize("other", [{"port": 4599}, {"auth": True}])
    def test_another_port_or_mode_replaces_the_emulator(self, machine, tmp_path, other):
        up(tmp_path)
        machine.done.clear()
        up(tmp_path, **other)
        assert machine.done == ["stop", "start", "deploy"]

    def test_a_deployment_that_fails_leaves_no_description(self, machine, tmp_path):
        up(tmp_path)
        machine.fingerprint, machine.fails = "f2", True
        with pytest.raises(LocalStackFailed, match="ROLLBACK_COMPLETE"):
            up(tmp_path)
        assert local_stack.read(tmp_path) is None
        assert status(tmp_path).state == "starting"

    def test_settings_come_on_top_of_the_local_ones(self, machine, tmp_path):
        up(tmp_path, context={"prefix": "shop", "removal": "retain"})
        assert machine.contexts == [{**CONTEXT, "prefix": "shop", "removal": "retain"}]

    def test_each_app_and_context_has_an_assembly_of_its_own(self):
        other = stack.App(Path("shop/app.py"), ())
        assert stack._name(other, {"a": 1}) != stack._name(stack.FANIN, {"a": 1})
        assert stack._name(stack.FANIN, {"a": 1, "b": 2}) == stack._name(stack.FANIN, {"b": 2, "a": 1})
        assert stack._name(stack.FANIN, {"a": 1}) != stack._name(stack.FANIN, {"a": 2})

    def test_without_a_checkout_it_says_what_to_do(self, machine, tmp_path, monkeypatch):
        monkeypatch.setattr(stack, "CHECKOUT", tmp_path / "site-packages")
        with pytest.raises(LocalStackFailed, match=r"needs a checkout of fanin.*clone the repository"):
            up(tmp_path)
        assert machine.running is None

    def test_the_stack_of_the_checkout_is_found_from_any_folder(self, machine, tmp_path, monkeypatch):
        # Given a checkout, and a current folder outside of it
        checkout, outside = tmp_path / "checkout", tmp_path / "outside"
        checkout.mkdir()
        (checkout / "app.py").touch()
        outside.mkdir()
        monkeypatch.setattr(stack, "CHECKOUT", checkout)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        monkeypatch.chdir(outside)
        # Then a stack is found while it is up, but none that has a root of its own
        up(tmp_path / "of a test")
        assert local_stack.remembered() == []
        assert up() == local_stack.current() == up()
        down()
        with pytest.raises(NotConfigured, match="fanin local up"):
            local_stack.current()

    def test_a_state_folder_that_cannot_be_written_is_told_and_does_no_harm(
        self, machine, tmp_path, monkeypatch
    ):
        (tmp_path / "app.py").touch()
        (tmp_path / "state").touch()
        monkeypatch.setattr(stack, "CHECKOUT", tmp_path)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        said: list[str] = []
        assert up(report=said.append) == local_stack.read(tmp_path)
        assert str(tmp_path) in said[-1]


class TestDown:
    def test_it_stops_the_emulator_and_deletes_the_description(self, machine, tmp_path):
        up(tmp_path)
        assert down(tmp_path)
        assert machine.running is None
        assert local_stack.read(tmp_path) is None
        assert not down(tmp_path)


def test_the_status_follows_the_emulator_and_what_was_deployed_to_it(machine, tmp_path):
    def found() -> tuple[str, object]:
        return status(tmp_path).state, status(tmp_path).stack

    assert found() == ("down", None)
    machine.running = Emulator(1, 4566, auth=False)
    assert found() == ("starting", None)
    deployed = up(tmp_path)
    assert found() == ("up", deployed)
    assert status(tmp_path).log_file == tmp_path / ".fanin" / "emulator.log"
    machine.healthy = False
    assert found() == ("unhealthy", None)
    # A stack on a process that has gone does not count
    machine.running, machine.healthy = Emulator(9, 4566, auth=False), True
    assert found() == ("starting", None)
    machine.running = None
    assert found() == ("down", None)
