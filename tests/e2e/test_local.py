"""The local stack itself: it comes up, stays up, comes back, and leaves nothing behind."""

import base64
import io
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from urllib3 import PoolManager

from fanin.errors import LocalStackFailed
from fanin.local import Stack, aws, deploy, down, read, status, up
from tests.e2e.deployment import eventually
from tests.e2e.recording_launcher import CALLS, DENIALS


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("local")
    yield folder
    down(folder)


@pytest.fixture(scope="module")
def come_up(root: Path, stack_app: dict[str, Any]) -> Callable[..., Stack]:
    return partial(up, root, **stack_app)


def living(group: int) -> list[int]:
    """Living processes of a group, including the emulator's Lambda workers."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, _, of_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(of_group) == group and state != "Z":
            found.append(int(entry.name))
    return found


def none_living(group: int) -> bool:
    return eventually(lambda: not living(group))


def status_of_api(stack: Stack) -> int:
    return PoolManager().request("GET", f"{stack.api_url}/v1/batches?state=open").status


def invoke_reaper(stack: Stack, times: int = 1) -> None:
    """Starts Lambda workers, by so many calls at the same time."""
    functions = stack.client("lambda")
    (name,) = (
        function["FunctionName"]
        for function in functions.list_functions()["Functions"]
        if "Reaper" in function["FunctionName"]
    )

    def invoke(_: int) -> None:
        assert "FunctionError" not in functions.invoke(FunctionName=name, Payload=b"{}")

    with ThreadPoolExecutor(times) as pool:
        list(pool.map(invoke, range(times)))


class TestUp:
    def test_makes_everything(self, come_up, root):
        # Given nothing, When the stack comes up
        stack = come_up()
        # Then it is there, its description is in the file, and the API refuses the unsigned
        assert status(root).state == "up"
        assert read(root) == status(root).stack == stack
        described = json.loads((root / ".fanin" / "local.json").read_text())
        assert described["endpoint_url"] == f"http://127.0.0.1:{stack.port}"
        assert status_of_api(stack) == 403

    def test_sets_what_the_emulators_cloudformation_ignores(self, come_up, root):
        stack = come_up()
        dynamodb = stack.client("dynamodb")
        for table in (stack.batches_table, stack.words_table, stack.parts_table):
            ttl = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
            backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
            assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "expires_at")
            assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"

    def test_keeps_what_the_stack_holds(self, come_up, root):
        # Given a stack with one more queue
        stack = come_up()
        stack.client("sqs").create_queue(QueueName="mine")
        # When the stack comes up again, with its description lost
        (root / ".fanin" / "local.json").unlink()
        again = come_up()
        # Then it was updated in place
        assert again == stack
        assert stack.client("sqs").get_queue_url(QueueName="mine")["QueueUrl"]

    def test_a_burst_of_first_calls_does_not_start_a_process_for_each(self, come_up, root):
        # Given a function that nobody has called
        stack = come_up()
        before = len(living(stack.pid))
        # When 24 call it at the same time, then each is answered, by far fewer processes
        invoke_reaper(stack, 24)
        assert 1 <= len(living(stack.pid)) - before <= 12

    def test_the_log_of_a_call_is_whole_when_the_call_has_ended(self, come_up, root):
        # Given a function that writes to its log until it ends
        functions = come_up().client("lambda")
        code = io.BytesIO()
        with ZipFile(code, "w") as made:
            made.writestr("talker.py", "def handler(event, _):\n    print(*range(event), sep='\\n')\n")
        functions.create_function(
            FunctionName="talker",
            Runtime="python3.12",
            Role="arn:aws:iam::000000000000:role/talker",
            Handler="talker.handler",
            Code={"ZipFile": code.getvalue()},
        )

        # When four callers keep the machine busy with it
        def last_line(lines: int) -> int:
            answer = functions.invoke(FunctionName="talker", Payload=b"%d" % lines, LogType="Tail")
            said = base64.b64decode(answer["LogResult"]).decode().splitlines()
            return max((int(line) for line in said if line.isdigit()), default=-1)

        calls = [2_000 + n for n in range(20)]
        with ThreadPoolExecutor(4) as pool:
            last = list(pool.map(last_line, calls))

        functions.delete_function(FunctionName="talker")
        # Then each was answered with the end of its own log, and no other call's
        assert last == [lines - 1 for lines in calls]


class TestComingBack:
    def test_after_kill_9(self, come_up, root):
        # Given a stack with a Lambda worker, When the emulator is killed without warning
        stack = come_up()
        invoke_reaper(stack)
        assert len(living(stack.pid)) > 1
        os.kill(stack.pid, signal.SIGKILL)
        # Then its workers end, too, and the file that is left does not count as a stack
        assert none_living(stack.pid)
        assert read(root) is not None
        assert status(root).state == "down"
        # And the next one is whole
        again = come_up()
        assert again.pid != stack.pid
        assert status(root).state == "up"
        assert status_of_api(again) == 403

    def test_after_hanging_on_another_port(self, come_up, root):
        # Given an emulator that runs but does not answer
        stack = come_up()
        os.kill(stack.pid, signal.SIGSTOP)
        assert status(root).state == "unhealthy"
        # When the stack comes up, Then another has taken its place, on the port that was asked for
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        again = come_up(port=port)
        assert (again.port, again.pid == stack.pid) == (port, False)
        assert none_living(stack.pid)
        assert status(root).state == "up"


class TestDown:
    def test_leaves_the_log_and_nothing_else(self, come_up, root):
        # Given a stack with a Lambda worker
        stack = come_up()
        invoke_reaper(stack)
        # When it goes down
        assert down(root)
        # Then no process, port or file of it is left
        assert none_living(stack.pid)
        assert status(root).state == "down"
        assert {file.name for file in (root / ".fanin").iterdir()} - {CALLS, DENIALS} == {
            "emulator.lock",
            "emulator.log",
            "up.lock",
        }
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", stack.port)) != 0


class TestDeploy:
    """Deployment of an assembly that is written by hand."""

    @staticmethod
    def assembly(folder: Path, queue: dict[str, Any], stack: str = "box") -> Path:
        template = {
            "Resources": {"Box": {"Type": "AWS::SQS::Queue", "Properties": queue}},
            "Outputs": {"BoxUrl": {"Value": {"Ref": "Box"}}},
        }
        asset = {
            "source": {"path": "box.template.json", "packaging": "file"},
            "destinations": {
                "here": {
                    "bucketName": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}",
                    "objectKey": f"{json.dumps(queue).encode().hex()}.json",
                }
            },
        }
        bucket, key = asset["destinations"]["here"].values()
        properties = {
            "stackName": stack,
            "templateFile": "box.template.json",
            "stackTemplateAssetObjectUrl": f"s3://{bucket}/{key}",
        }
        artifacts = {"box": {"type": "aws:cloudformation:stack", "properties": properties}}
        (folder / "box.template.json").write_text(json.dumps(template))
        (folder / "box.assets.json").write_text(json.dumps({"files": {"template": asset}}))
        (folder / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
        return folder

    def test_creates_then_updates(self, bare_emulator, tmp_path):
        created = deploy(self.assembly(tmp_path, {"DelaySeconds": 1}), bare_emulator)
        updated = deploy(self.assembly(tmp_path, {"DelaySeconds": 2}), bare_emulator)
        unchanged = deploy(self.assembly(tmp_path, {"DelaySeconds": 2}), bare_emulator)
        assert created == updated == unchanged
        attributes = aws.client("sqs", bare_emulator).get_queue_attributes(
            QueueUrl=created["BoxUrl"], AttributeNames=["DelaySeconds"]
        )["Attributes"]
        assert attributes == {"DelaySeconds": "2"}

    def test_names_the_resource_that_failed_and_why(self, tmp_path, bare_emulator):
        # Given an invalid queue, When it is deployed, Then the error names it and the reason
        broken = self.assembly(tmp_path, {"VisibilityTimeout": 999_999}, "broken")
        reason = r"stack broken is ROLLBACK_COMPLETE: Box \(AWS::SQS::Queue\): .*between 0 and 43200"
        with pytest.raises(LocalStackFailed, match=reason):
            deploy(broken, bare_emulator)
        # And after a correction the failed stack does not prevent a deployment
        assert deploy(self.assembly(tmp_path, {"VisibilityTimeout": 9}, "broken"), bare_emulator).keys() == {
            "BoxUrl"
        }
