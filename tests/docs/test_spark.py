"""docs/how-to/spark/index.md is what the jobs, the command line and the stack are."""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections import UserDict
from importlib import import_module
from itertools import dropwhile, takewhile
from pathlib import Path
from textwrap import dedent
from types import ModuleType, SimpleNamespace

import botocore.session
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template
from typer.testing import CliRunner

from fanin import names
from fanin.cli.main import app
from fanin.cli.spark import JOBS
from fanin.spark import emr
from fanin.spark.jobs.__main__ import job
from fanin.spark.runtime.service import Service
from fanin_cdk.settings import Settings

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "spark" / "index.md").read_text()
DATASETS = (ROOT / "docs" / "how-to" / "spark" / "datasets.md").read_text()
GLUE = (ROOT / "docs" / "how-to" / "spark" / "glue.md").read_text()
STREAMS = (ROOT / "docs" / "how-to" / "spark" / "streams.md").read_text()
QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012/work"
SAID = [PAGE, (ROOT / "README.md").read_text()]


def lines(start: str) -> list[list[str]]:
    """The commands of the pages that begin so, as a shell takes them apart."""
    return [
        words(line)
        for text in SAID
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if line.startswith(start)
    ]


def words(command: str) -> list[str]:
    """A command as a shell takes it apart that knows the queue."""
    return shlex.split(command.replace("$QUEUE", QUEUE))


def options(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


@pytest.mark.parametrize("line", lines("fanin spark"), ids=" ".join)
def test_submissions_are_understood(line):
    """Their own options by the command, the others by the job."""
    _, *words = takewhile(lambda word: word != "--", line)
    _, *arguments = dropwhile(lambda word: word != "--", line) if "--" in line else ["--"]
    group, command = words[:2]
    described = CliRunner().invoke(app, [group, command, "--help"])
    assert described.exit_code == 0
    assert options(words) <= set(re.findall(r"--[a-z-]+", described.stdout))
    if command == "submit":
        job(words[2]).parser().parse_args(arguments)


def test_the_pages_have_submissions():
    assert {line[2] for line in lines("fanin spark")} == {"submit", "status", "dashboard", "cancel"}


@pytest.mark.parametrize("line", lines("python -m fanin.spark.jobs"), ids=" ".join)
def test_jobs_are_understood(line):
    import_module(line[2]).JOB.parser().parse_args(line[3:])


def examples() -> list[list[str]]:
    """The commands that the pages of the jobs show, fenced or as indented text."""
    return [
        words(command.replace("\\\n", " "))
        for page in (ROOT / "docs" / "how-to" / "spark").glob("*.md")
        for command in re.findall(
            r"^(?: {4})?(python -m fanin\.spark\.jobs\.(?:.*\\\n)*.*)$", page.read_text(), re.MULTILINE
        )
    ]


@pytest.mark.parametrize("line", examples(), ids=" ".join)
def test_examples_of_jobs_are_understood(line):
    import_module(line[2]).JOB.parser().parse_args(line[3:])


def test_the_pages_of_the_jobs_have_examples():
    assert {line[2].rpartition(".")[2] for line in examples()} >= {"ack", "audit", "fan_out"}
    assert any("--totals" in line for line in examples())


@pytest.mark.parametrize("text", SAID, ids=["page", "readme"])
def test_every_job_has_its_page(text):
    first = r"^\| \[([a-z-]+)\]\(([a-z-]+)\.md\)|\[([a-z-]+)\]\(docs/how-to/spark/([a-z-]+)\.md\)"
    pages = [
        (table or prose, page or file) for table, page, prose, file in re.findall(first, text, re.MULTILINE)
    ]
    assert pages == [(name, name) for name in ("fan-out", "ack", "audit")]
    assert {name for name, _ in pages} == set(JOBS)


@pytest.mark.parametrize("name", JOBS)
def test_its_page_has_every_argument_and_no_other(name):
    page = (ROOT / "docs" / "how-to" / "spark" / f"{name}.md").read_text()
    told = {
        option
        for line in page.splitlines()
        if line.startswith("| `--")
        for option in re.findall(r"--[a-z-]+", line.split("|")[1])
    }
    shown = [action for action in job(name).parser()._actions if action.help != argparse.SUPPRESS]
    known = {option for action in shown for option in action.option_strings}
    assert told == known - {"-h", "--help"}


def test_the_release_by_default_is_the_stacks():
    (release,) = re.findall(r"^\| `([^`]+)` \|.*the default here", PAGE, re.MULTILINE)
    assert release == Settings.pipeline_release


def test_settings_exist():
    known = set(Settings.__dataclass_fields__)
    assert set(re.findall(r"\bpipeline_[a-z_]+", PAGE)) <= known


def test_permissions_are_those_of_the_calls():
    # Given the calls in the code, by the names that boto3 gives them
    called = set(re.findall(r"\.([a-z]+(?:_[a-z]+)+)\((?:Stack|Bucket|application|\*\*self)", source()))
    operations = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): f"{service}:{name}"
        for service in ("cloudformation", "s3", "emr-serverless")
        for name in botocore.session.get_session().get_service_model(service).operation_names
    }
    # When they are compared with the page
    said = set(re.findall(r"^    ([a-z0-9-]+:[A-Z]\w+)", PAGE, re.MULTILINE))
    # Then it names each, and the role that is passed on
    assert said == {operations[name] for name in called} | {"iam:PassRole"}


def test_the_script_for_glue_sets_the_names_of_the_tables(monkeypatch):
    # Given Glue's function, which also returns options of its own, without values if the job has none
    given = {
        "FANIN_BATCHES_TABLE": "b",
        "FANIN_WORDS_TABLE": "w",
        "FANIN_PARTS_TABLE": "p",
        "FANIN_DIRECTORY_TABLE": "d",
    }
    utils = ModuleType("awsglue.utils")
    utils.getResolvedOptions = lambda _, names: {
        **{name: given[name] for name in names},
        "TempDir": None,
        "encryption_type": None,
        "job_bookmark_option": "job-bookmark-disable",
    }
    monkeypatch.setitem(sys.modules, "awsglue", ModuleType("awsglue"))
    monkeypatch.setitem(sys.modules, "awsglue.utils", utils)
    environment = _Texts()
    monkeypatch.setattr(os, "environ", environment)
    # When the page's script runs
    (script,) = re.findall(
        r"^ +```python\n((?:(?!```).)*getResolvedOptions.*?)^ +```$", GLUE, re.MULTILINE | re.DOTALL
    )
    exec(dedent(script), {})
    # Then the environment has the names of the tables and the region, and nothing of Glue's
    assert environment == {**given, "AWS_DEFAULT_REGION": "eu-west-1"}
    # which are all that a job needs
    assert Service.from_env(given)


def test_the_command_of_the_page_prints_rejects(tmp_path):
    # Given rejects, as a job leaves them
    pq.write_table(pa.table({"value": ["K\ufffdse"], "reason": ["malformed"]}), tmp_path / "part-0.parquet")
    (tmp_path / "_SUCCESS").touch()
    (command,) = re.findall(r"^python -c '.*$", DATASETS, re.MULTILINE)
    _, *words, folder = shlex.split(command)
    assert folder.endswith("/rejects")
    # When the page's command is run on their folder, then it shows them
    done = subprocess.run([sys.executable, *words, tmp_path], capture_output=True, text=True, check=True)
    assert "K\ufffdse  malformed" in done.stdout


def test_a_stream_on_emr_is_no_batch_job_and_gets_what_the_stack_prints():
    """EMR cancels a batch job after 12 hours ("Other considerations" of EMR Serverless)."""
    (section,) = re.findall(r"^## On EMR Serverless\n(.*?)(?=^## )", STREAMS, re.MULTILINE | re.DOTALL)
    assert "`--mode STREAMING`" in section
    assert "awaitTermination" in section
    assert set(re.findall(r"`([A-Z]\w+)`", section)) == {
        names.PIPELINE_OUTPUT_APPLICATION,
        names.PIPELINE_OUTPUT_CONF,
        names.PIPELINE_OUTPUT_PACKAGE,
        names.PIPELINE_OUTPUT_ROLE,
    }


def test_a_micro_batch_of_kinesis_ends_while_records_keep_coming():
    """The connector refuses less than ten seconds; without a bound it reads on while records trickle in."""
    (seconds,) = re.findall(r'\.option\("kinesis\.maxFetchTimePerShardSec", "(\d+)"\)', STREAMS)
    assert 10 <= int(seconds) <= 60


def test_the_documented_grant_lets_jobs_read_inputs_under_another_key():
    # Given the page's lines, in a stack with a pipeline
    (lines,) = re.findall(
        r"^```python\n(from aws_cdk import aws_kms.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
    )
    stack = Stack()
    lake_key_arn = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("emr-serverless.amazonaws.com"))
    # When they run
    exec(lines, {"self": stack, "lake_key_arn": lake_key_arn, "pipeline": SimpleNamespace(role=role)})
    # Then the role may decrypt with that key, and nothing else
    (policy,) = Template.from_stack(stack).find_resources("AWS::IAM::Policy").values()
    assert policy["Properties"]["PolicyDocument"]["Statement"] == [
        {"Action": "kms:Decrypt", "Effect": "Allow", "Resource": lake_key_arn}
    ]


class _Texts(UserDict[str, str]):
    """Takes texts only, as ``os.environ`` does."""

    def __setitem__(self, key: str, value: str) -> None:
        if not isinstance(value, str):
            raise TypeError(f"str expected, not {type(value).__name__}")
        super().__setitem__(key, value)


def source() -> str:
    return " ".join(Path(emr.__file__).read_text().split()).replace("( ", "(")
