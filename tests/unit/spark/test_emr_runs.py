"""Jobs on EMR Serverless, every request held to botocore's model of the service."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from fanin import names
from fanin.errors import AccessDenied, InvalidRequest, JobRunNotFound, NotConfigured
from fanin.local.aws import session
from fanin.spark import emr
from fanin.spark.emr import JobRun, Pipeline, Script

APPLICATION, RUN = "00f1example", "00f2example"
ROLE = "arn:aws:iam::123456789012:role/jobs"
NAMED = {"applicationId": APPLICATION, "jobRunId": RUN}
OUTPUTS = {
    names.PIPELINE_OUTPUT_APPLICATION: APPLICATION,
    names.PIPELINE_OUTPUT_ROLE: ROLE,
    names.PIPELINE_OUTPUT_BUCKET: "pipeline",
    names.PIPELINE_OUTPUT_ENTRY: "s3://assets/entry.py",
    names.PIPELINE_OUTPUT_PACKAGE: "s3://assets/fanin.zip",
    names.PIPELINE_OUTPUT_CONF: json.dumps({"spark.a": "1", "spark.b": "s3://b/c.zip#d"}),
}
PIPELINE = Pipeline(
    APPLICATION,
    ROLE,
    "pipeline",
    "s3://assets/entry.py",
    "s3://assets/fanin.zip",
    {"spark.a": "1", "spark.b": "s3://b/c.zip#d"},
)
PACKAGE = Script("fanin-jobs", b"script", b"zip")


class Services(dict[str, Stubber]):
    def __missing__(self, service: str) -> Stubber:
        self[service] = Stubber(session().client(service))
        self[service].activate()
        return self[service]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    """What each service is asked, in order; all of it must have been asked in the end."""
    services = Services()
    monkeypatch.setattr(emr, "client_factory", lambda service, **settings: lambda: services[service].client)
    yield services
    for stub in services.values():
        stub.assert_no_pending_responses()


@pytest.fixture
def runs() -> Pipeline:
    return replace(PIPELINE)


def started(aws: Services, **said: Any) -> None:
    request = {
        "applicationId": APPLICATION,
        "executionRoleArn": ROLE,
        "name": ANY,
        "clientToken": ANY,
        "jobDriver": ANY,
        "retryPolicy": ANY,
        **said,
    }
    answer = {"applicationId": APPLICATION, "jobRunId": RUN, "arn": f"arn:aws:{'x' * 60}"}
    aws["emr-serverless"].add_response("start_job_run", answer, request)


def seen(aws: Services, state: str, details: str = "JobRun", **more: Any) -> None:
    answer = {
        "applicationId": APPLICATION,
        "jobRunId": RUN,
        "arn": f"arn:aws:{'x' * 60}",
        "createdBy": "arn:aws:iam::123456789012:user/ann",
        "createdAt": 0,
        "updatedAt": 0,
        "executionRole": ROLE,
        "releaseLabel": "emr-spark-8.1.0",
        "jobDriver": {"sparkSubmit": {"entryPoint": PIPELINE.entry}},
        "name": "audit",
        "state": state,
        "stateDetails": details,
        **more,
    }
    aws["emr-serverless"].add_response("get_job_run", {"jobRun": answer}, NAMED)


class TestStack:
    def described(self, aws: Services, outputs: dict[str, str]) -> None:
        stack = {
            "StackName": "fanin-pipeline",
            "CreationTime": 0,
            "StackStatus": "CREATE_COMPLETE",
            "Outputs": [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()],
        }
        aws["cloudformation"].add_response(
            "describe_stacks", {"Stacks": [stack]}, {"StackName": "fanin-pipeline"}
        )

    def test_its_outputs_are_the_pipeline(self, aws):
        self.described(aws, OUTPUTS)
        assert Pipeline.of_stack("fanin-pipeline") == PIPELINE

    def test_another_stack_is_refused(self, aws):
        self.described(aws, {"ApiUrl": "https://"})
        with pytest.raises(NotConfigured, match="fanin-pipeline has no output 'ApplicationId'"):
            Pipeline.of_stack("fanin-pipeline")

    def test_no_stack(self, aws):
        aws["cloudformation"].add_client_error("describe_stacks", "ValidationError", "does not exist")
        with pytest.raises(NotConfigured, match="no stack other in this account"):
            Pipeline.of_stack("other")

    def test_a_stack_that_may_not_be_seen(self, aws):
        aws["cloudformation"].add_client_error("describe_stacks", "AccessDenied")
        with pytest.raises(AccessDenied):
            Pipeline.of_stack("fanin-pipeline")


class TestSubmit:
    def test_code_is_uploaded_under_its_digest_then_the_job_starts(self, aws, runs):
        # Given
        where = f"code/{PACKAGE.digest}"
        for key, body in ((f"{where}/fanin-jobs.py", b"script"), (f"{where}/fanin-jobs.zip", b"zip")):
            aws["s3"].add_response("put_object", {}, {"Bucket": "pipeline", "Key": key, "Body": body})
        parameters = (
            f"--py-files s3://pipeline/{where}/fanin-jobs.zip"
            " --conf spark.a=2 --conf spark.b=s3://b/c.zip#d --conf spark.c=3"
        )
        driver = {
            "entryPoint": f"s3://pipeline/{where}/fanin-jobs.py",
            "entryPointArguments": ["audit", "--output", "s3://lake/a b"],
            "sparkSubmitParameters": parameters,
        }
        started(
            aws,
            name="audit",
            jobDriver={"sparkSubmit": driver},
            retryPolicy={"maxAttempts": 3},
            executionTimeoutMinutes=2,
        )
        # When
        run = runs.submit(
            "audit",
            ["--output", "s3://lake/a b"],
            package=PACKAGE,
            conf={"spark.a": "2", "spark.c": "3"},
            attempts=3,
            timeout=timedelta(seconds=61),
        )
        # Then
        assert run == JobRun(RUN, "audit")

    def test_what_the_stack_was_deployed_with_needs_no_upload(self, aws, runs):
        driver = {
            "entryPoint": PIPELINE.entry,
            "entryPointArguments": ["audit"],
            "sparkSubmitParameters": (
                "--py-files s3://assets/fanin.zip --conf spark.a=1 --conf spark.b=s3://b/c.zip#d"
            ),
        }
        started(aws, jobDriver={"sparkSubmit": driver})
        assert runs.submit("audit").id == RUN

    @pytest.mark.parametrize(
        ("job", "conf"), [("audit", {"spark.c": "two words"}), (Script("two words", b"script"), {})]
    )
    def test_what_emr_would_split_is_refused_before_anything_is_uploaded(self, runs, job, conf):
        with pytest.raises(InvalidRequest, match="two words"):
            runs.submit(job, conf=conf)

    @pytest.mark.parametrize("files", [b"files", None])
    def test_a_script_is_uploaded_and_runs_beside_the_fanin_of_the_stack(self, aws, runs, files):
        # Given
        script = Script("clean", b"script", files)
        where = f"code/{script.digest}"
        uploads = {"clean.py": b"script"} | ({} if files is None else {"clean.zip": files})
        for name, body in uploads.items():
            aws["s3"].add_response(
                "put_object", {}, {"Bucket": "pipeline", "Key": f"{where}/{name}", "Body": body}
            )
        packed = "" if files is None else f",s3://pipeline/{where}/clean.zip"
        driver = {
            "entryPoint": f"s3://pipeline/{where}/clean.py",
            "entryPointArguments": ["--day", "7"],
            "sparkSubmitParameters": (
                f"--py-files s3://assets/fanin.zip{packed} --conf spark.a=1 --conf spark.b=s3://b/c.zip#d"
            ),
        }
        started(aws, name="clean", jobDriver={"sparkSubmit": driver})
        # When
        run = runs.submit(script, ["--day", "7"])
        # Then
        assert run == JobRun(RUN, "clean")

    @pytest.mark.parametrize(("other", "same"), [("nightly 7/1", True), ("nightly 7/2", False)])
    def test_the_same_token_asks_for_the_same_run(self, aws, runs, other, same):
        # Given tokens with characters that EMR refuses
        asked: list[str] = []
        client = aws["emr-serverless"].client
        client.meta.events.register(
            "before-parameter-build.emr-serverless.StartJobRun",
            lambda params, **_: asked.append(params["clientToken"]),
        )
        for _ in range(2):
            started(aws)
        # When
        for token in ("nightly 7/1", other):
            runs.submit("audit", token=token)
        # Then
        assert (len(set(asked)) == 1) is same

    def test_a_refusal_says_why(self, aws, runs):
        aws["emr-serverless"].add_client_error("start_job_run", "ValidationException", "no such property")
        with pytest.raises(InvalidRequest, match="cannot start the job: no such property"):
            runs.submit("audit")

    def test_a_bucket_that_does_not_take_the_code(self, aws, runs):
        aws["s3"].add_client_error("put_object", "AccessDenied")
        with pytest.raises(AccessDenied):
            runs.submit("audit", package=PACKAGE)


class TestRuns:
    def test_look(self, aws, runs):
        seen(aws, "FAILED", "exit code 1", totalExecutionDurationSeconds=75)
        assert runs.look(RUN) == JobRun(RUN, "audit", "FAILED", "exit code 1", 75)

    def test_follow_gives_each_state_once_until_the_end(self, aws, runs):
        # Given
        slept: list[float] = []
        for state in ("SCHEDULED", "RUNNING", "RUNNING", "SUCCESS"):
            seen(aws, state)
        # When
        told = [(run.state, run.ended, run.failed) for run in runs.follow(RUN, sleep=slept.append)]
        # Then
        assert told == [("SCHEDULED", False, False), ("RUNNING", False, False), ("SUCCESS", True, False)]
        assert slept == [emr.POLL] * 3

    @pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
    def test_other_ends_are_failures(self, state):
        assert JobRun(RUN, state=state).failed

    def test_every_state_of_the_service_is_either_final_or_not(self):
        model = session().client("emr-serverless").meta.service_model
        states = set(model.shape_for("JobRunState").enum)
        on_the_way = {"SUBMITTED", "PENDING", "SCHEDULED", "RUNNING", "CANCELLING", "QUEUED"}
        assert states - on_the_way == set(emr.ENDED)

    def test_dashboard(self, aws, runs):
        aws["emr-serverless"].add_response("get_dashboard_for_job_run", {"url": "https://ui"}, NAMED)
        assert runs.dashboard(RUN) == "https://ui"

    @pytest.mark.parametrize("call", ["look", "cancel", "dashboard"])
    def test_a_run_that_is_not_there(self, aws, runs, call):
        operation = {
            "look": "get_job_run",
            "cancel": "cancel_job_run",
            "dashboard": "get_dashboard_for_job_run",
        }
        aws["emr-serverless"].add_client_error(
            operation[call], "ResourceNotFoundException", expected_params=NAMED
        )
        with pytest.raises(JobRunNotFound):
            getattr(runs, call)(RUN)
