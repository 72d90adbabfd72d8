"""The commands on Spark jobs, with EMR replaced."""

import pkgutil
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from fanin.cli.exits import ExitCode
from fanin.errors import JobRunNotFound, NotConfigured
from fanin.spark import jobs
from fanin.spark.emr import JobRun, Pipeline, Script
from fanin.spark.jobs import JOBS


@dataclass
class Emr:
    """In place of EMR: runs a job through the states it is given."""

    states: list[JobRun] = field(default_factory=lambda: [JobRun("r1", "audit", "SUCCESS", "done", 9)])
    submitted: list[SimpleNamespace] = field(default_factory=list)
    stacks: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def submit(self, job: Any, arguments: list[str], **options: Any) -> JobRun:
        self.submitted.append(SimpleNamespace(job=job, arguments=arguments, **options))
        return JobRun("r1", getattr(job, "name", job))

    def look(self, run_id: str) -> JobRun:
        if run_id != "r1":
            raise JobRunNotFound(f"no run {run_id}")
        return self.states[0]

    def follow(self, run_id: str) -> Any:
        assert run_id == "r1"
        yield from self.states

    def cancel(self, run_id: str) -> None:
        self.cancelled.append(run_id)

    def dashboard(self, run_id: str) -> str:
        return f"https://ui/{run_id}"


@pytest.fixture
def emr(monkeypatch: pytest.MonkeyPatch) -> Emr:
    made = Emr()

    def of_stack(stack: str) -> Emr:
        made.stacks.append(stack)
        return made

    monkeypatch.setattr(Pipeline, "of_stack", of_stack)
    return made


def test_its_jobs_are_those_there_are():
    modules = {module.name for module in pkgutil.iter_modules(jobs.__path__)}
    assert {name.replace("-", "_") for name in JOBS} == modules - {"__main__", "options", "running"}


class TestSubmit:
    def test_takes_the_installed_package_and_hands_the_arguments_on(self, run, emr):
        result = run(
            *("spark", "submit", "fan-out", "--conf", "spark.a=b=c", "--conf", "spark.d=1"),
            *("--attempts", 2, "--timeout", "90m", "--token", "nightly"),
            *("--", "--input", "s3://lake/in", "--local"),
        )
        assert (result.exit_code, result.stdout) == (0, "r1 SUBMITTED\n")
        (asked,) = emr.submitted
        assert asked.job == "fan-out"
        assert list(asked.arguments) == ["--input", "s3://lake/in", "--local"]
        assert asked.package == Script.installed()
        assert asked.conf == {"spark.a": "b=c", "spark.d": "1"}
        assert (asked.attempts, asked.token) == (2, "nightly")
        assert asked.timeout.total_seconds() == 5_400
        assert emr.stacks == ["fanin-pipeline"]

    def test_a_script_of_ones_own_with_what_it_imports(self, run, emr, tmp_path):
        script, folder = tmp_path / "clean.py", tmp_path / "rules"
        script.write_text("import rules.days")
        folder.mkdir()
        (folder / "days.py").write_text("")
        result = run(
            *("spark", "submit", "--script", script, "--files", folder, "--deployed"), *("--", "--day", "7")
        )
        assert (result.exit_code, result.stdout) == (0, "r1 SUBMITTED\n")
        (asked,) = emr.submitted
        assert (asked.job, list(asked.arguments)) == (Script.of(script, [folder]), ["--day", "7"])

    def test_a_script_that_is_not_there(self, run, emr):
        result = run("spark", "submit", "--script", "nowhere.py", "--", "--day", "7")
        assert (result.exit_code, emr.submitted) == (ExitCode.USAGE, [])
        assert "nowhere.py: No such file" in result.stderr

    def test_deployed_code_of_another_stack(self, run, emr):
        result = run("spark", "submit", "audit", "--deployed", "--stack", "shop-pipeline", "--json")
        assert result.document == {"id": "r1", "name": "audit", "state": "SUBMITTED"} | {
            "details": "",
            "seconds": None,
        }
        assert emr.submitted[0].package is None
        assert emr.stacks == ["shop-pipeline"]

    @pytest.mark.parametrize(
        ("state", "code"),
        [("SUCCESS", ExitCode.OK), ("FAILED", ExitCode.WRONG), ("CANCELLED", ExitCode.WRONG)],
    )
    def test_waiting_exits_as_the_run_did(self, run, emr, state, code):
        end = replace(emr.states[0], state=state, details="exit code")
        emr.states = [JobRun("r1", "audit", "RUNNING"), end]
        result = run("spark", "submit", "audit", "--wait")
        assert (result.exit_code, result.stdout) == (code, f"r1 {state}\n")
        assert result.stderr == (
            f"run r1; to wait for it again: fanin spark status r1 --wait\nRUNNING\n{state} exit code\n"
        )

    @pytest.mark.parametrize(
        "wrong",
        [
            ["nothing"],
            [],
            ["--", "--scan"],
            ["audit", "--files", "rules"],
            ["audit", "--wheel", "fanin.whl", "--deployed"],
            ["audit", "--conf", "spark.a"],
            ["audit", "--timeout", "soon"],
            ["audit", "--attempts", "0"],
        ],
    )
    def test_a_command_line_that_makes_no_sense_starts_nothing(self, run, emr, wrong):
        assert run("spark", "submit", *wrong).exit_code == ExitCode.USAGE
        assert emr.submitted == []

    def test_a_wheel_that_is_none(self, run, emr, tmp_path):
        (tmp_path / "fanin.whl").write_text("no zip")
        result = run("spark", "submit", "audit", "--wheel", tmp_path / "fanin.whl")
        assert result.exit_code == ExitCode.USAGE
        assert emr.submitted == []

    def test_without_a_stack(self, run, monkeypatch):
        def of_stack(stack: str) -> None:
            raise NotConfigured(f"no stack {stack}")

        monkeypatch.setattr(Pipeline, "of_stack", of_stack)
        result = run("spark", "submit", "audit")
        assert (result.exit_code, result.stderr) == (ExitCode.DENIED, "fanin: no stack fanin-pipeline\n")


class TestRuns:
    def test_status_says_how_it_is_and_waits_for_the_end_if_asked_to(self, run, emr):
        emr.states = [JobRun("r1", "audit", "RUNNING"), JobRun("r1", "audit", "FAILED", "exit code 1")]
        assert run("spark", "status", "r1").exit_code == ExitCode.OK
        result = run("spark", "status", "r1", "--wait", "--json")
        assert (result.exit_code, result.document["state"]) == (1, "FAILED")
        emr.states = emr.states[1:]
        result = run("spark", "status", "r1")
        assert (result.exit_code, result.stdout, result.stderr) == (1, "r1 FAILED\n", "exit code 1\n")

    def test_no_such_run(self, run, emr):
        assert run("spark", "status", "r2").exit_code == ExitCode.NOT_FOUND

    def test_cancel_and_dashboard(self, run, emr):
        assert run("spark", "cancel", "r1").stdout == "r1\n"
        assert emr.cancelled == ["r1"]
        assert run("spark", "dashboard", "r1").stdout == "https://ui/r1\n"
