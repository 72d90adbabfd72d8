"""EMR Serverless: fanin and scripts of users packed into zips, and runs of jobs on the pipeline's stack.

Spark puts the zips on the path of driver and executors.
"""

import hashlib
import io
import json
import math
import time
import uuid
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from botocore.exceptions import ClientError

from fanin import names
from fanin.adapters.aws import client_factory, error_code, translated
from fanin.errors import InvalidRequest, JobRunNotFound, NotConfigured

ENTRY: Final = "fanin/spark/jobs/__main__.py"  # the script that starts any job
_PACKED: Final = "fanin-jobs"  # its name beside the scripts of users
SUCCESS: Final = "SUCCESS"
ENDED: Final = (SUCCESS, "FAILED", "CANCELLED")  # states that never change again
POLL: Final = 10.0  # seconds between two looks at a run, which takes at least a minute


@dataclass(frozen=True)
class Script:
    """A script, and what it imports: fanin with the script of its jobs, or one of a user.

    Attributes:
        name: of the script, without ``.py``.
        entry: the script, which spark-submit starts.
        files: a zip of what it imports; None if that is nothing but fanin and what EMR has. A wheel is a zip,
            too, but Spark takes only names that end in zip from ``--py-files``.
    """

    name: str
    entry: bytes
    files: bytes | None = None

    @property
    def digest(self) -> str:
        """Names script and files: the same code has the same digest on every machine."""
        return hashlib.sha256(hashlib.sha256(self.entry).digest() + (self.files or b"")).hexdigest()

    @classmethod
    def installed(cls) -> Self:
        """The fanin of this process, be it installed, an editable checkout or a zip itself."""
        return cls._of_jobs(_zip(_files(resources.files("fanin"), "fanin")), "the installed package")

    @classmethod
    def wheel(cls, file: Path) -> Self:
        """A wheel of fanin."""
        try:
            return cls._of_jobs(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidRequest(f"{file}: {error.strerror}") from error

    @classmethod
    def _of_jobs(cls, content: bytes, name: str) -> Self:
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as packed:
                return cls(_PACKED, packed.read(ENTRY), content)
        except (zipfile.BadZipFile, KeyError) as error:
            raise InvalidRequest(f"{name} is not a wheel of fanin: {error}") from error

    @classmethod
    def of(cls, script: Path, files: Sequence[Path] = ()) -> Self:
        """Pack a script of a user.

        Args:
            script: a file of Python.
            files: what it imports or reads: files, and folders with all that is in them but hidden files.
                Each is on the path by its own name, as if it lay beside the script.
        """
        packed: dict[str, Traversable] = {}
        for path in (script, *files):
            if path.resolve().name.partition(".")[0] == "fanin":
                raise InvalidRequest(f"{path} would hide the package fanin, which is there anyway; rename it")
        try:
            path = script
            entry = script.read_bytes()
            compile(entry, str(script), "exec", dont_inherit=True)
            for path in files:
                name = path.resolve().name
                found = {name: path} if path.is_file() else dict(_files(path, name))
                if twice := packed.keys() & found.keys():
                    raise InvalidRequest(
                        f"{path} would replace {min(twice)} of another file; rename one of them"
                    )
                packed |= found
        except OSError as error:
            raise InvalidRequest(f"{path}: {error.strerror}") from error
        except (SyntaxError, ValueError) as error:
            raise InvalidRequest(f"{script} is not a script of Python: {error}") from error
        return cls(script.stem, entry, _zip(packed.items()) if packed else None)


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """All files below a folder, in the same order on every machine."""
    for one in sorted(folder.iterdir(), key=lambda found: found.name):
        inner = f"{name}/{one.name}"
        if one.name == "__pycache__" or one.name.startswith("."):
            continue
        yield from [(inner, one)] if one.is_file() else _files(one, inner)


def _zip(files: Iterable[tuple[str, Traversable]]) -> bytes:
    """Zip files under their names, to the same bytes on every machine.

    Folders have entries too, since Python finds no package without ``__init__.py`` in a zip otherwise.
    """
    content, folders = io.BytesIO(), set[str]()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, file in files:
            parents = [f"{parent}/" for parent in PurePosixPath(name).parents if parent.name]
            for folder in sorted(set(parents) - folders):
                packed.writestr(zipfile.ZipInfo(folder), b"")  # of 1980, where that of files would differ
            folders.update(parents)
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            packed.writestr(info, file.read_bytes())
    return content.getvalue()


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


@dataclass(frozen=True)
class Pipeline:
    """The pipeline's stack, by its outputs, and runs of jobs on it.

    ``entry`` and ``package`` are S3 URLs of its own code.
    """

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

    @cached_property
    def _emr(self) -> Any:
        return client_factory("emr-serverless", read_timeout=60)()

    def submit(
        self,
        job: str | Script,
        arguments: Sequence[str] = (),
        *,
        package: Script | None = None,
        conf: Mapping[str, str] | None = None,
        token: str | None = None,
        attempts: int = 1,
        timeout: timedelta | None = None,
    ) -> JobRun:
        """Start a job.

        Args:
            job: its name; or a script of a user, which can be repeated if there are several attempts.
            arguments: of the job.
            package: the fanin to run it with; None for the one that the stack was deployed with.
            conf: Spark properties; they override the stack's.
            token: names the submission. Submitting it again starts no second run, and gives the run of that
                time.
            attempts: how often EMR starts the job until it succeeds.
            timeout: when EMR stops it; None for EMR's default of 12 hours.
        """
        properties = [f"{name}={value}" for name, value in {**self.conf, **(conf or {})}.items()]
        for text in (*properties, *([job.name] if isinstance(job, Script) else ())):
            if len(text.split()) > 1:
                raise InvalidRequest(f"EMR splits parameters at blanks; leave them out of {text!r}")
        entry, code = self.entry, [self.package]
        if package:
            entry, *code = self._uploaded(package)
        if isinstance(job, Script):
            entry, *own = self._uploaded(job)
            code, job = [*code, *own], job.name
        else:
            arguments = [job, *arguments]
        token = uuid.uuid4().hex if token is None else token
        request: dict[str, Any] = {
            "name": job,
            "clientToken": hashlib.sha256(token.encode()).hexdigest(),
            "executionRoleArn": self.role,
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": entry,
                    "entryPointArguments": list(arguments),
                    "sparkSubmitParameters": " --conf ".join((f"--py-files {','.join(code)}", *properties)),
                }
            },
            "retryPolicy": {"maxAttempts": attempts},
        }
        if timeout is not None:
            request["executionTimeoutMinutes"] = math.ceil(timeout / timedelta(minutes=1))
        with _explained("start the job"):
            answer = self._emr.start_job_run(applicationId=self.application, **request)
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
        return {"applicationId": self.application, "jobRunId": run_id}

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
                    client.put_object(Bucket=self.bucket, Key=key, Body=content)
                urls.append(f"s3://{self.bucket}/{key}")
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
