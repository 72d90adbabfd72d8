"""`make smoke`, with a profile that leads to an emulator: it deploys, tries, counts and removes."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fanin.domain.costs import Usage
from tests.smoke.account import Account
from tests.smoke.remains import left
from tests.smoke.usage import usage

ROOT = Path(__file__).parents[2]


@pytest.fixture
def account(bare_emulator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account through a profile, in another region than the emulator's own."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "FANIN_"))]:
        monkeypatch.delenv(name)
    config = tmp_path / "config"
    config.write_text(
        "[profile elsewhere]\nregion = eu-west-1\naws_access_key_id = test\naws_secret_access_key = test\n"
        f"endpoint_url = {bare_emulator}\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    return Account("elsewhere")


@pytest.fixture
def smoke(account: Account) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tests.smoke", "--profile", account.profile, *arguments],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_without_a_clear_yes_nothing_is_done(smoke, account):
    said = smoke("--yes", "y")

    assert said.returncode == 2
    assert "account 000000000000, region eu-west-1" in said.stdout
    assert "nothing was done" in said.stdout
    assert "make smoke PROFILE=elsewhere YES=yes" in said.stdout
    assert left(account, "smoke-") == []


def test_a_profile_that_does_not_exist_is_named(smoke):
    said = smoke("--profile", "nobody")

    assert said.returncode == 2
    assert "nobody" in said.stdout


def test_a_profile_without_a_region_says_so(tmp_path):
    config = tmp_path / "config"
    config.write_text("[profile nowhere]\naws_access_key_id = test\naws_secret_access_key = test\n")
    others = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}

    said = subprocess.run(
        [sys.executable, "-m", "tests.smoke", "--profile", "nowhere"],
        cwd=ROOT,
        env={**others, "AWS_CONFIG_FILE": str(config)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert said.returncode == 2
    assert "profile nowhere has no region" in said.stdout


@pytest.mark.soak
def test_everything_is_tried_and_nothing_is_left(smoke, account):
    said = smoke("--yes", "yes", "--items", "150", "--behaviour", "completes_with_its_last or breaks_off")

    assert said.returncode == 0, said.stdout + said.stderr
    trials = ("behaviour", "paths", "demo", "dead letters", "audit by a scan", "an update", "cost")
    for passed in trials:
        assert f"✓ {passed}" in said.stdout
    assert "✓ nothing is left" in said.stdout
    assert "✗" not in said.stdout
    assert left(account, "smoke-") == []


@pytest.mark.soak
def test_what_fails_is_said_and_everything_is_removed_all_the_same(smoke, account):
    # Given a suite in which no test has this name, which pytest takes for a failure
    said = smoke("--yes", "yes", "--only", "behaviour", "--behaviour", "no_such_test")

    assert said.returncode == 1
    assert "✗ behaviour" in said.stdout
    assert "✓ nothing is left" in said.stdout
    assert left(account, "smoke-") == []


def test_what_is_left_is_found(account):
    # Given a queue and a table of a deployment, and a queue of another
    account.client("sqs").create_queue(QueueName="smoke-1234-work")
    account.client("sqs").create_queue(QueueName="other-smoke-1234")
    account.client("logs").create_log_group(logGroupName="/aws/lambda/smoke-1234-api")

    try:
        assert left(account, "smoke-1234") == [
            f"queue {account.client('sqs').get_queue_url(QueueName='smoke-1234-work')['QueueUrl']}",
            "log group /aws/lambda/smoke-1234-api",
        ]
    finally:
        account.client("sqs").delete_queue(
            QueueUrl=account.client("sqs").get_queue_url(QueueName="smoke-1234-work")["QueueUrl"]
        )
        account.client("logs").delete_log_group(logGroupName="/aws/lambda/smoke-1234-api")


def test_usage_is_summed_over_the_resources_of_the_stacks(account):
    # Given a stack with a queue and a table, what CloudWatch says about them, and about another queue
    template = """{"Resources": {
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"QueueName": "used"}},
        "Table": {"Type": "AWS::DynamoDB::Table", "Properties": {
            "TableName": "used", "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}}}}"""
    since = datetime.now(UTC)
    account.client("cloudformation").create_stack(StackName="using", TemplateBody=template)
    for namespace, metric, dimension, value in (
        ("AWS/SQS", "NumberOfMessagesSent", ("QueueName", "used"), 5),
        ("AWS/SQS", "NumberOfEmptyReceives", ("QueueName", "used"), 3),
        ("AWS/SQS", "NumberOfMessagesSent", ("QueueName", "unused"), 100),
        ("AWS/DynamoDB", "ConsumedWriteCapacityUnits", ("TableName", "used"), 7),
    ):
        name, of = dimension
        account.client("cloudwatch").put_metric_data(
            Namespace=namespace,
            MetricData=[{"MetricName": metric, "Dimensions": [{"Name": name, "Value": of}], "Value": value}],
        )
    # Then the sums are those of its own resources
    assert usage(account, ["using"], since) == Usage(queue_requests=8, writes=7)
