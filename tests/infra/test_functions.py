"""What all functions have in common, and the layers they share."""

import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_lambda as lambda_

from fanin import names
from fanin.local.emulator import installer
from fanin_cdk import Settings
from fanin_cdk.assets import FUNCTIONS as HANDLERS
from fanin_cdk.assets import REQUIREMENTS
from fanin_cdk.layers import Layers, PipInstall, third_party_layer

FUNCTIONS = (
    *("api", "acks", "notifier", "settler", "timer", "reaper", "dead_letters"),
    *("directory", "registrar", "router", "scatter", "replies", "redriver", "targets"),
)


def test_there_is_a_function_for_every_folder(tracker):
    assert set(tracker.functions) == set(FUNCTIONS)
    folders = {folder.name for folder in HANDLERS.iterdir() if folder.is_dir()}
    elsewhere = {"fan_out", "console", "removal"}  # of FanOutAndWait, and of settings
    assert folders - elsewhere == set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_logged_and_told_what_it_needs(altered, name):
    # Given a stack with settings of its own
    function = altered.properties(altered.stack.tracker.functions[name].function)
    assert function["Handler"] == "handler.handler"
    assert "TracingConfig" not in function
    log = altered.of_type("AWS::Logs::LogGroup")[function["LoggingConfig"]["LogGroup"]["Ref"]]
    assert log["RetentionInDays"] == 7
    # Without the lines of each invocation, and with those of metrics, which have no level
    assert {name: function["LoggingConfig"][name] for name in ("LogFormat", "SystemLogLevel")} == {
        "LogFormat": "JSON",
        "SystemLogLevel": "WARN",
    }
    assert function["LoggingConfig"]["ApplicationLogLevel"] == "DEBUG"
    environment = function["Environment"]["Variables"]
    assert environment[names.ENV_OPEN_IDLE_TTL] == "600"
    assert environment["POWERTOOLS_SERVICE_NAME"] == "shop"
    assert environment["POWERTOOLS_LOG_LEVEL"] == "DEBUG"
    # And nothing holds back the concurrency of the account
    assert "ReservedConcurrentExecutions" not in function


def test_metrics_are_logged_whatever_the_level_of_the_functions(frugal):
    """A line of metrics has no level, which Lambda takes for INFO."""
    for function in frugal.of_type("AWS::Lambda::Function").values():
        assert function["LoggingConfig"]["ApplicationLogLevel"] == "INFO"


def test_functions_log_a_sample_if_the_settings_say_so(frugal):
    for function in frugal.of_type("AWS::Lambda::Function").values():
        assert function["Environment"]["Variables"][names.ENV_LOG_SAMPLE] == "5"


def test_concurrency_is_kept_for_a_function_if_the_settings_say_so(frugal):
    reserved = {
        name: frugal.properties(function.function).get("ReservedConcurrentExecutions")
        for name, function in frugal.stack.tracker.functions.items()
    }
    assert {name: most for name, most in reserved.items() if most is not None} == {"acks": 40, "api": 41}


def test_the_functions_whose_speed_matters_have_a_whole_processor(fanin, tracker):
    memory = {name: fanin.properties(f.function)["MemorySize"] for name, f in tracker.functions.items()}
    assert {name for name, size in memory.items() if size == 1769} == {"api", "acks"}


@pytest.mark.parametrize(("given", "architecture"), [("fanin", "arm64"), ("altered", "x86_64")])
def test_functions_and_the_runtime_layer_are_for_one_processor(request, given, architecture):
    fanin = request.getfixturevalue(given)
    functions = fanin.of_type("AWS::Lambda::Function").values()
    assert {tuple(function["Architectures"]) for function in functions} == {(architecture,)}
    assert {len(function["Layers"]) for function in functions} == {2}
    layer = fanin.properties(fanin.stack.tracker.layers.runtime)
    assert layer["CompatibleArchitectures"] == [architecture]
    assert layer["CompatibleRuntimes"] == [function["Runtime"] for function in functions][:1]


def test_the_package_layer_leaves_out_what_functions_do_not_run(pip, tmp_path):
    # Given a synthesis that bundles
    app = cdk.App(outdir=str(tmp_path))
    Layers(cdk.Stack(app, "layers"), "Layers", settings=Settings())
    app.synth()
    # Then the package is there, without command line, emulator and caches
    (package,) = tmp_path.glob("asset.*/python/fanin")
    parts = {path.name for path in package.iterdir()}
    assert {"domain", "app", "adapters", "entry", "errors.py", "names.py", "py.typed"} <= parts
    assert not parts & {"cli", "local", "spark"}
    assert not list(package.rglob("__pycache__"))
    assert not list(package.parent.glob("*.egg-info"))


class Pip:
    """Replaces pip: records its arguments, and installs one file."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, command: list[str], *, check: bool) -> None:
        assert check
        self.calls.append(command)
        target = Path(command[command.index("--target") + 1])
        target.mkdir()
        (target / "boto3.py").touch()


@pytest.fixture
def pip(monkeypatch):
    pip = Pip()
    monkeypatch.setattr(subprocess, "run", pip)
    return pip


@pytest.mark.parametrize(
    ("settings", "platform"),
    [
        (Settings(architecture="arm64"), "manylinux2014_aarch64"),
        (Settings(architecture="x86_64"), "manylinux2014_x86_64"),
        (Settings(local=True), None),
    ],
)
def test_third_party_packages_are_bundled_for_their_target(pip, tmp_path, settings, platform):
    # Given a synthesis that bundles
    app = cdk.App(outdir=str(tmp_path))
    Layers(cdk.Stack(app, "layers"), "Layers", settings=settings)
    # Then pip installed the pins once, for Lambda, or for this machine
    (command,) = pip.calls
    pip_itself = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    by = pip_itself if platform else installer()
    assert command[: len(by)] == by
    assert "--require-hashes" in command
    assert str(REQUIREMENTS / "runtime" / "requirements.txt") in command
    assert Path(command[command.index("--target") + 1]).name == "python"
    if platform is None:
        assert not [option for option in command if option.startswith("--platform")]
    else:
        assert f"--platform={platform}" in command
        assert command[command.index("--python-version") + 1] == "3.14"
        assert "--only-binary=:all:" in command


@pytest.mark.parametrize(
    ("runtime", "platforms"),
    [
        (lambda_.Runtime.PYTHON_3_11, ["manylinux2014_x86_64"]),
        (lambda_.Runtime.PYTHON_3_12, ["manylinux_2_28_x86_64", "manylinux2014_x86_64"]),
    ],
    ids=["amazon-linux-2", "amazon-linux-2023"],
)
def test_a_layer_for_another_python_has_wheels_that_its_system_can_load(pip, tmp_path, runtime, platforms):
    # Given functions on a Python of which one runs on a system with an older C library
    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "layers")
    third_party_layer(stack, "Layer", "runtime", settings=Settings(), processor="x86_64", runtime=runtime)
    # Then pip takes wheels for that system and that Python
    (command,) = pip.calls
    taken = [option for option in command if option.startswith("--platform=")]
    assert taken == [f"--platform={platform}" for platform in platforms]
    assert command[command.index("--python-version") + 1] == runtime.name.removeprefix("python")


def test_the_layer_is_bundled_again_only_if_pins_or_target_change(tmp_path):
    pins = tmp_path / "requirements.txt"
    pins.write_text("boto3==1\n")
    one = PipInstall(pins, ["--platform", "a"]).digest()
    assert PipInstall(pins, ["--platform", "a"]).digest() == one
    assert PipInstall(pins, ["--platform", "b"]).digest() != one
    pins.write_text("boto3==2\n")
    assert PipInstall(pins, ["--platform", "a"]).digest() != one
