"""Deploys a synthesized CDK assembly to the emulator with boto3 alone, without the CDK CLI or npm.

Does the work of ``cdk bootstrap`` and ``cdk deploy``. Then it sets time to live and point-in-time recovery of
the tables, which the emulator's CloudFormation ignores.
"""

from __future__ import annotations

import hashlib
import json
import stat
import time
from collections.abc import Iterator
from graphlib import TopologicalSorter
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from botocore.exceptions import ClientError

from fanin.errors import LocalStackFailed
from fanin.local.aws import ACCOUNT, REGION, client

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_ssm import SSMClient

CAPABILITIES: Final = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")
DEPLOY_SECONDS: Final = 300.0
DEAD_STATES: Final = ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED")


def fingerprint(assembly: Path) -> str:
    """A hash of an assembly; two assemblies have the same one exactly if they deploy the same."""
    digest = hashlib.sha256()
    for file in sorted(assembly.glob("*.template.json")) + sorted(assembly.glob("*.assets.json")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def deploy(assembly: Path, endpoint_url: str) -> dict[str, str]:
    """Create or update the stacks of an assembly, in the order of their dependencies, and wait for them.

    Args:
        assembly: folder that ``python app.py`` wrote.
        endpoint_url: URL of the emulator.

    Returns:
        The outputs of all deployed stacks, by name.

    Raises:
        LocalStackFailed: the assembly has no stack, or a resource failed; the message says which and why.
    """
    manifest = json.loads((assembly / "manifest.json").read_text())
    stacks = list(_in_order(manifest["artifacts"]))
    if not stacks:
        raise LocalStackFailed(f"the assembly {assembly} has no stack")
    ssm: SSMClient = client("ssm", endpoint_url)
    ssm.put_parameter(Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String", Overwrite=True)
    outputs: dict[str, str] = {}
    for name in stacks:
        outputs |= _deploy(assembly, manifest["artifacts"][name]["properties"], name, endpoint_url)
    return outputs


def _in_order(artifacts: dict[str, Any]) -> Iterator[str]:
    """The names of the stacks, each after the stacks that it depends on."""
    needs = {name: artifact.get("dependencies", []) for name, artifact in artifacts.items()}
    for name in TopologicalSorter(needs).static_order():
        if artifacts[name]["type"] == "aws:cloudformation:stack":
            yield name


def _deploy(assembly: Path, properties: dict[str, Any], artifact: str, endpoint_url: str) -> dict[str, str]:
    name = properties.get("stackName", artifact)
    _publish(assembly, assembly / f"{artifact}.assets.json", endpoint_url)
    template_file = assembly / properties["templateFile"]
    cloudformation: CloudFormationClient = client("cloudformation", endpoint_url)
    _apply(cloudformation, name, _object_url(properties["stackTemplateAssetObjectUrl"], endpoint_url))
    resources = json.loads(template_file.read_text())["Resources"]
    physical = {
        resource["LogicalResourceId"]: resource["PhysicalResourceId"]
        for page in cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
        for resource in page["StackResourceSummaries"]
    }
    _finish_tables(resources, physical, endpoint_url)
    (description,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in description.get("Outputs", [])}


def _publish(assembly: Path, asset_manifest: Path, endpoint_url: str) -> None:
    """Upload those assets of a stack that are missing; the key of an asset is the hash of its content."""
    s3: S3Client = client("s3", endpoint_url)
    known: dict[str, set[str]] = {}
    for asset in json.loads(asset_manifest.read_text())["files"].values():
        source = assembly / asset["source"]["path"]
        for destination in asset["destinations"].values():
            bucket, key = _substitute(destination["bucketName"]), destination["objectKey"]
            if bucket not in known:
                s3.create_bucket(Bucket=bucket)
                pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
                known[bucket] = {found["Key"] for page in pages for found in page.get("Contents", [])}
            if key not in known[bucket]:
                content = archive(source) if source.is_dir() else source.read_bytes()
                s3.put_object(Bucket=bucket, Key=key, Body=content)


def archive(folder: Path, *, compressed: bool = False) -> bytes:
    """Zip a folder; the same content always gives the same bytes.

    Args:
        folder: what goes into the archive.
        compressed: make it small, which takes seconds for a layer; an emulator on this machine has no use for
            that.
    """
    buffer = BytesIO()
    compression = ZIP_DEFLATED if compressed else ZIP_STORED
    with ZipFile(buffer, "w") as zipped:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = ZipInfo(file.relative_to(folder).as_posix())  # of 1980, whenever it was written
                entry.compress_type = compression
                entry.external_attr = (stat.S_IFREG | (0o755 if file.stat().st_mode & 0o100 else 0o644)) << 16
                zipped.writestr(entry, file.read_bytes())
    return buffer.getvalue()


def _apply(cloudformation: CloudFormationClient, name: str, template_url: str) -> None:
    status = _status(cloudformation, name)
    if status in DEAD_STATES:
        cloudformation.delete_stack(StackName=name)
        status = _settled(cloudformation, name)
    since = time.time()
    write = cloudformation.create_stack if status is None else cloudformation.update_stack
    try:
        write(StackName=name, TemplateURL=template_url, Capabilities=CAPABILITIES)
    except ClientError as error:
        message = error.response["Error"]["Message"]
        if "No updates are to be performed" in message:
            return
        raise LocalStackFailed(f"CloudFormation refused stack {name}: {message}") from error
    status = _settled(cloudformation, name)
    if status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
        raise LocalStackFailed(f"stack {name} is {status}: {_reason(cloudformation, name, since)}")


def _status(cloudformation: CloudFormationClient, name: str) -> str | None:
    try:
        (description,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if "does not exist" in error.response["Error"]["Message"]:
            return None
        raise
    status: str = description["StackStatus"]
    return None if status == "DELETE_COMPLETE" else status


def _settled(cloudformation: CloudFormationClient, name: str) -> str | None:
    deadline = time.monotonic() + DEPLOY_SECONDS
    while (status := _status(cloudformation, name)) and status.endswith("_IN_PROGRESS"):
        if time.monotonic() > deadline:
            raise LocalStackFailed(
                f"stack {name} is still {status} after {DEPLOY_SECONDS:.0f} s; see the emulator's log"
            )
        time.sleep(0.05)
    return status


def _reason(cloudformation: CloudFormationClient, name: str, since: float) -> str:
    """Why a stack failed: the reasons of all resources that failed by themselves, first failure first.

    Resources that were cancelled are left out, since another failure was the cause.
    """
    failures = []
    for page in cloudformation.get_paginator("describe_stack_events").paginate(StackName=name):
        for event in page["StackEvents"]:
            reason = event.get("ResourceStatusReason", "no reason given")
            recent = event["Timestamp"].timestamp() >= since - 1
            if recent and event["ResourceStatus"].endswith("_FAILED") and "cancelled" not in reason.lower():
                failures.append(f"{event['LogicalResourceId']} ({event['ResourceType']}): {reason}")
    return "; ".join(reversed(failures)) or "no resource gives a reason"


def _finish_tables(resources: dict[str, Any], physical: dict[str, str], endpoint_url: str) -> None:
    """Set time to live and point-in-time recovery, as the template asks for them."""
    dynamodb: DynamoDBClient = client("dynamodb", endpoint_url)
    for logical, resource in resources.items():
        if resource["Type"] != "AWS::DynamoDB::Table":
            continue
        table, wanted = physical[logical], resource["Properties"]
        if ttl := wanted.get("TimeToLiveSpecification"):
            now = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
            if now.get("TimeToLiveStatus") != "ENABLED":
                dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=ttl)
        if wanted.get("PointInTimeRecoverySpecification", {}).get("PointInTimeRecoveryEnabled"):
            dynamodb.update_continuous_backups(
                TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )


def _substitute(text: str) -> str:
    """Replace CloudFormation's pseudo parameters by the values of the emulator."""
    for pseudo, value in (("AccountId", ACCOUNT), ("Region", REGION), ("Partition", "aws")):
        text = text.replace(f"${{AWS::{pseudo}}}", value)
    return text


def _object_url(s3_url: str, endpoint_url: str) -> str:
    """The HTTP URL in the emulator of an object that is named ``s3://bucket/key``."""
    return f"{endpoint_url}/{_substitute(s3_url).removeprefix('s3://')}"
