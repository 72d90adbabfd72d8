"""Any job by its name."""

import pytest

from fanin.spark.jobs import JobName
from fanin.spark.jobs import __main__ as jobs
from fanin.spark.jobs.running import OK, USAGE


@pytest.mark.parametrize("arguments", [[], ["compact"]])
def test_an_unknown_job_is_refused_with_the_names_of_all(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs.main(arguments) == USAGE
    assert "ack, audit, fan-out;" in capsys.readouterr().err


@pytest.mark.parametrize("name", JobName)
def test_every_job_has_its_help(name: JobName, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        jobs.main([name, "--help"])
    assert ended.value.code == OK
    assert f"fanin.spark.jobs.{name.replace('-', '_')}" in capsys.readouterr().out


def test_the_other_arguments_are_the_job_s(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    monkeypatch.setattr(
        jobs.job(JobName.AUDIT).__class__, "main", lambda self, arguments: given.append(arguments) or 3
    )
    assert jobs.main(["audit", "--scan"]) == 3
    assert given == [["--scan"]]
