"""Jobs on EMR Serverless: the outputs of the pipeline's stack, the code in its bucket, and runs of jobs."""

import hashlib
import json
import math
import shlex
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any, Final, Self

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import client_factory, error_code, translated
from fanin.errors import InvalidRequest, JobRunNotFound, NotConfigured
from fanin.spark.emr.packing import Script

SUCCESS: Final = "SUCCESS"
ENDED: Final = (SUCCESS, "FAILED", "CANCELLED")  # states that never change again
POLL: Final = 10.0  # seconds between two looks at a run, which takes at least a minute


@dataclass(frozen=True)
class Pipeline:
    """The pipeline's stack, by its outputs; ``entry`` and ``package`` are S3 URLs of its own code."""

    application: str
    role: str
    bucket: str
    entry: str
    package: str
    conf: Mapping[str, str]

    @classmethod
    def of_stack(cls, stack: str) -> Self:
        """Look the stack up; ``NotConfigured`` if it is not there, or has no pipeline."""
        try:
            with translated():
                (found,) = client_factory("cloudformation")().describe_stacks(StackName=stack)["Stacks"]
        except ClientError as error:
            raise NotConfigured(
                f"no stack {stack} in this account and region; deploy it with the setting pipeline=true"
            ) from error
        outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", ())}
        try:
            return cls(
                application=outputs[names.PIPELINE_OUTPUT_APPLICATION],
                role=outputs[names.PIPELINE_OUTPUT_ROLE],
                bucket=outputs[names.PIPELINE_OUTPUT_BUCKET],
                entry=outputs[names.PIPELINE_OUTPUT_ENTRY],
                package=outputs[names.PIPELINE_OUTPUT_PACKAGE],
                conf=json.loads(outputs[names.PIPELINE_OUTPUT_CONF]),
            )
        except KeyError as error:
            raise NotConfigured(
                f"stack {stack} has no output {error}: it has no pipeline, or is still being created"
            ) from error


@dataclass(frozen=True)
class Submission:
    """What to run.

    Attributes:
        job: its name; or a script of a user, which can be repeated if there are several attempts.
        arguments: of the job.
        package: the fanin to run it with; None for the one that the stack was deployed with.
        conf: Spark properties; they override the stack's.
        token: names the submission. Submitting it again starts no second run.
        attempts: how often EMR starts the job until it succeeds.
        timeout: when EMR stops it; None for EMR's default of 12 hours.
    """

    job: str | Script
    arguments: Sequence[str] = ()
    package: Script | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    attempts: int = 1
    timeout: timedelta | None = None


@dataclass(frozen=True)
class JobRun:
    """A run of a job, as it was last seen."""

    id: str
    name: str = ""
    state: str = "SUBMITTED"
    details: str = ""
    seconds: int | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def failed(self) -> bool:
        return self.ended and self.state != SUCCESS


class Runs:
    """Runs of jobs on one pipeline."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    @cached_property
    def _emr(self) -> Any:
        return client_factory("emr-serverless", read_timeout=60)()

    def submit(self, submission: Submission) -> JobRun:
        """Start a job; if its token was used before, this gives the run of that time."""
        job, arguments = submission.job, submission.arguments
        entry, code = self._pipeline.entry, [self._pipeline.package]
        if submission.package:
            entry, *code = self._uploaded(submission.package)
        if isinstance(job, Script):
            entry, *own = self._uploaded(job)
            code, job = [*code, *own], job.name
        else:
            arguments = [job, *arguments]
        conf = {**self._pipeline.conf, **submission.conf}
        pairs = (word for name, value in conf.items() for word in ("--conf", f"{name}={value}"))
        request: dict[str, Any] = {
            "name": job,
            "clientToken": hashlib.sha256(submission.token.encode()).hexdigest(),
            "executionRoleArn": self._pipeline.role,
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": entry,
                    "entryPointArguments": list(arguments),
                    "sparkSubmitParameters": shlex.join(("--py-files", ",".join(code), *pairs)),
                }
            },
            "retryPolicy": {"maxAttempts": submission.attempts},
        }
        if submission.timeout is not None:
            request["executionTimeoutMinutes"] = math.ceil(submission.timeout / timedelta(minutes=1))
        with _explained("start the job"):
            answer = self._emr.start_job_run(applicationId=self._pipeline.application, **request)
        return JobRun(answer["jobRunId"], job)

    def look(self, run_id: str) -> JobRun:
        with _explained("look at the run"):
            seen = self._emr.get_job_run(**self._named(run_id))["jobRun"]
        state, seconds = (seen["state"], seen["stateDetails"]), seen.get("totalExecutionDurationSeconds")
        return JobRun(run_id, seen.get("name", ""), *state, seconds)

    def follow(self, run_id: str, *, sleep: Callable[[float], None] = time.sleep) -> Iterator[JobRun]:
        """Give each change of state, until the run has ended."""
        last = ""
        while True:
            seen = self.look(run_id)
            if seen.state != last:
                yield seen
            if seen.ended:
                return
            last = seen.state
            sleep(POLL)

    def cancel(self, run_id: str) -> None:
        """Ask a run to end; its job can be submitted again."""
        with _explained("cancel the run"):
            self._emr.cancel_job_run(**self._named(run_id))

    def dashboard(self, run_id: str) -> str:
        """A link to the Spark UI and the logs of a run; it works for an hour."""
        with _explained("make the link"):
            url: str = self._emr.get_dashboard_for_job_run(**self._named(run_id))["url"]
        return url

    def _named(self, run_id: str) -> dict[str, str]:
        return {"applicationId": self._pipeline.application, "jobRunId": run_id}

    def _uploaded(self, script: Script) -> list[str]:
        """Upload a script, and give the S3 URLs of it and of the zip of its files, if it has any.

        The keys follow from the content, so the code of a run never changes. Uploading it again each time
        restarts the time after which the bucket removes old code.
        """
        client, urls = client_factory("s3", read_timeout=60)(), list[str]()
        for suffix, content in (("py", script.entry), ("zip", script.files)):
            if content is not None:
                key = f"code/{script.digest}/{script.name}.{suffix}"
                with _explained("upload the code"):
                    client.put_object(Bucket=self._pipeline.bucket, Key=key, Body=content)
                urls.append(f"s3://{self._pipeline.bucket}/{key}")
        return urls


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        with translated():
            yield
    except NotConfigured as error:
        if isinstance(error.__cause__, ClientError):
            raise JobRunNotFound(f"cannot {what}: no such run or application") from error
        raise
    except ClientError as error:
        reason = error.response.get("Error", {}).get("Message") or error_code(error)
        raise InvalidRequest(f"cannot {what}: {reason}") from error
