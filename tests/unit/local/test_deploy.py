"""The deployment of an assembly: its assets, its stacks in order, and why a stack failed."""

import importlib
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import pytest
from botocore.exceptions import ClientError

from fanin.errors import LocalStackFailed
from fanin.local.deploy import _in_order, archive, fingerprint

deploying = importlib.import_module("fanin.local.deploy")  # fanin.local has a function of this name


def test_archive_has_the_same_bytes_for_the_same_content(tmp_path):
    # Given two folders of the same files, written in another order at another time
    for folder, order in (("one", ("a.py", "b/c.py")), ("two", ("b/c.py", "a.py"))):
        for name in order:
            file = tmp_path / folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
    (tmp_path / "two" / "a.py").touch()
    # Then their archives are equal, and hold the files
    first, second = archive(tmp_path / "one"), archive(tmp_path / "two")
    assert first == second
    with ZipFile(BytesIO(first)) as zipped:
        assert {name: zipped.read(name) for name in zipped.namelist()} == {
            "a.py": b"a.py",
            "b/c.py": b"b/c.py",
        }


def test_archive_may_be_small(tmp_path):
    # Given a folder whose content compresses well
    (tmp_path / "zeros").write_bytes(bytes(100_000))
    # Then a compressed archive is small, has the same content, and the same bytes each time
    small = archive(tmp_path, compressed=True)
    assert len(small) < 2_000
    assert len(archive(tmp_path)) > 100_000
    assert small == archive(tmp_path, compressed=True)
    with ZipFile(BytesIO(small)) as zipped:
        assert zipped.read("zeros") == bytes(100_000)


def test_archive_keeps_what_is_executable(tmp_path):
    (tmp_path / "run").touch(mode=0o755)
    (tmp_path / "read").touch(mode=0o644)
    with ZipFile(BytesIO(archive(tmp_path))) as zipped:
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in zipped.infolist()}
    assert modes == {"run": 0o755, "read": 0o644}


def test_stacks_come_after_those_they_depend_on():
    stack = "aws:cloudformation:stack"
    artifacts = {
        "top": {"type": stack, "dependencies": ["middle", "top.assets"]},
        "top.assets": {"type": "cdk:asset-manifest"},
        "middle": {"type": stack, "dependencies": ["bottom"]},
        "bottom": {"type": stack},
        "Tree": {"type": "cdk:tree"},
    }
    assert list(_in_order(artifacts)) == ["bottom", "middle", "top"]


def test_fingerprint_follows_templates_and_assets(tmp_path):
    template = tmp_path / "fanin.template.json"
    template.write_text(json.dumps({"Resources": {}}))
    before = fingerprint(tmp_path)

    (tmp_path / "tree.json").write_text("{}")
    assert fingerprint(tmp_path) == before

    template.write_text(json.dumps({"Resources": {"One": {}}}))
    assert fingerprint(tmp_path) != before


def described(status: str) -> dict[str, Any]:
    return {"Stacks": [{"StackStatus": status, "Outputs": [{"OutputKey": "Url", "OutputValue": "u"}]}]}


def refused(message: str) -> ClientError:
    return ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "UpdateStack")


class CloudFormation:
    """In place of CloudFormation: a stack that goes through the given states."""

    def __init__(self, *states: str | None, refusal: str = "", events: Sequence[dict[str, Any]] = ()) -> None:
        self._states = list(states)
        self._refusal = refusal
        self._events = events

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if state is None:
            raise refused(f"Stack with id {StackName} does not exist")
        return described(state)

    def create_stack(self, **_: object) -> None:
        if self._refusal:
            raise refused(self._refusal)

    def get_paginator(self, _: str) -> Any:
        return SimpleNamespace(paginate=lambda StackName: [{"StackEvents": list(self._events)}])  # noqa: N803


def event(resource: str, status: str, reason: str, age: float = 0) -> dict[str, Any]:
    return {
        "LogicalResourceId": resource,
        "ResourceType": "AWS::SQS::Queue",
        "ResourceStatus": status,
        "ResourceStatusReason": reason,
        "Timestamp": datetime.fromtimestamp(time.time() - age, UTC),
    }


class TestApply:
    def test_a_template_that_is_refused_is_told(self):
        with pytest.raises(LocalStackFailed, match="CloudFormation refused stack box: no such type"):
            deploying._apply(CloudFormation(None, refusal="no such type"), "box", "url")

    def test_a_failure_names_the_resources_that_failed_by_themselves_first_one_first(self):
        # Given the events of two failed resources, newest first, among others
        events = [
            event("Box", "ROLLBACK_COMPLETE", "rolled back"),
            event("Third", "CREATE_FAILED", "Resource creation cancelled"),
            event("Second", "CREATE_FAILED", "denied"),
            event("First", "CREATE_FAILED", "too long"),
            event("Old", "CREATE_FAILED", "of an earlier deployment", age=60),
        ]
        with pytest.raises(LocalStackFailed) as failed:
            deploying._apply(CloudFormation(None, "ROLLBACK_COMPLETE", events=events), "box", "url")
        assert str(failed.value) == (
            "stack box is ROLLBACK_COMPLETE: First (AWS::SQS::Queue): too long; "
            "Second (AWS::SQS::Queue): denied"
        )

    def test_a_failure_without_a_reason(self):
        with pytest.raises(LocalStackFailed, match="no resource gives a reason"):
            deploying._apply(CloudFormation(None, "CREATE_FAILED"), "box", "url")

    def test_a_stack_that_never_settles(self, monkeypatch):
        monkeypatch.setattr(deploying, "DEPLOY_SECONDS", 0.1)
        with pytest.raises(LocalStackFailed, match="still CREATE_IN_PROGRESS after 0 s; see the emul"):
            deploying._apply(CloudFormation(None, "CREATE_IN_PROGRESS"), "box", "url")


class Bucket:
    """In place of S3: keeps objects."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.buckets: list[str] = []
        self.puts = 0

    def create_bucket(self, Bucket: str) -> None:  # noqa: N803
        self.buckets.append(Bucket)

    def get_paginator(self, _: str) -> Any:
        def paginate(Bucket: str) -> list[dict[str, Any]]:  # noqa: N803
            found = [{"Key": key} for bucket, key in self.objects if bucket == Bucket]
            return [{"Contents": found}] if found else [{}]

        return SimpleNamespace(paginate=paginate)

    def put_object(self, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803
        self.puts += 1
        self.objects[Bucket, Key] = Body


def test_assets_are_uploaded_once_folders_as_zip_files(tmp_path, monkeypatch):
    # Given an assembly with a file and a folder
    (tmp_path / "template.json").write_text("{}")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "handler.py").write_text("x = 1")
    where = {"bucketName": "assets-${AWS::AccountId}-${AWS::Region}"}
    files = {
        "1": {"source": {"path": "template.json"}, "destinations": {"d": {**where, "objectKey": "1.json"}}},
        "2": {"source": {"path": "code"}, "destinations": {"d": {**where, "objectKey": "2.zip"}}},
    }
    manifest = tmp_path / "fanin.assets.json"
    manifest.write_text(json.dumps({"files": files}))
    bucket = Bucket()
    monkeypatch.setattr(deploying, "client", lambda service, endpoint_url: bucket)
    # When they are published twice
    for _ in range(2):
        deploying._publish(tmp_path, manifest, "http://127.0.0.1:4566")
    # Then each was uploaded once, under the names of the emulator's account
    name = "assets-000000000000-us-east-1"
    assert set(bucket.objects) == {(name, "1.json"), (name, "2.zip")}
    assert bucket.objects[name, "1.json"] == b"{}"
    assert ZipFile(BytesIO(bucket.objects[name, "2.zip"])).namelist() == ["handler.py"]
    assert bucket.puts == 2


def test_a_template_is_found_in_the_emulator():
    found = deploying._object_url("s3://assets-${AWS::AccountId}/t.json", "http://127.0.0.1:4566")
    assert found == "http://127.0.0.1:4566/assets-000000000000/t.json"


def test_an_assembly_without_a_stack_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": {}}))
    with pytest.raises(LocalStackFailed, match=r"has no stack$"):
        deploying.deploy(tmp_path, "http://127.0.0.1:1")
