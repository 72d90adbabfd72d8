"""cdk-nag and cfn-lint find nothing, although they would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_sqs as sqs

from fanin_cdk import FaninStack, PipelineStack, Settings
from tests.infra.conftest import FRUGAL, TOKENS, UNBUNDLED

ROOT = Path(__file__).resolve().parents[2]
KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
EVERYTHING = {
    **TOKENS,
    "prefix": "shop",
    "pipeline": True,
    "console_write": True,
    "kms_key_arn": KEY,
    "alarm_topic_arn": "arn:aws:sns:eu-west-1:123456789012:oncall",
    "pipeline_inputs": "s3://lake/orders/,s3://telemetry",
    "pipeline_network": "endpoints",
}
LITTLE = {**FRUGAL, "auth": "none", "console": True, "pipeline_network": "nat"}


def nag(app: cdk.App) -> None:
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))


@pytest.mark.soak
def test_cdk_nag_and_cfn_lint_find_nothing_in_the_app_with_everything(tmp_path):
    # Given the command that the CDK runs, with another prefix in the context
    command = json.loads((ROOT / "cdk.json").read_text())["app"]
    context = {**{name: str(value).lower() for name, value in EVERYTHING.items()}, **UNBUNDLED}
    environment = os.environ | {
        "CDK_OUTDIR": str(tmp_path),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    # When a shell runs it, nag included
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Then it made both stacks, and cfn-lint finds nothing in them
    made = sorted(tmp_path.glob("*.template.json"))
    assert [path.name for path in made] == ["shop-pipeline.template.json", "shop.template.json"]
    assert lint(*made) == []


def test_cdk_nag_finds_nothing_in_little():
    app = cdk.App(context=UNBUNDLED)
    stack = FaninStack(app, "fanin", settings=Settings(pipeline=True, **LITTLE))
    PipelineStack(app, "fanin-pipeline", tracker=stack.tracker)
    nag(app)
    app.synth()


def lint(*templates: Path) -> list[str]:
    """What cfn-lint finds in templates."""
    assert templates
    done = subprocess.run(
        [Path(sys.executable).with_name("cfn-lint"), "--format", "json", "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )
    return [f"{one['Rule']['Id']} {one['Filename']}: {one['Message']}" for one in json.loads(done.stdout)]


@pytest.mark.soak
def test_cdk_nag_and_cfn_lint_would_find_something(tmp_path):
    # Given a stack with a queue that nobody checks, and a template with a property that does not exist
    app = cdk.App()
    sqs.Queue(cdk.Stack(app, "fanin"), "Bad")
    nag(app)
    wrong = {"Resources": {"Bad": {"Type": "AWS::SQS::Queue", "Properties": {"Colour": "red"}}}}
    template = tmp_path / "wrong.template.json"
    template.write_text(json.dumps(wrong))
    with pytest.raises(RuntimeError, match="fanin/Bad/Resource"):
        app.synth()
    (found,) = lint(template)
    assert "'Colour' was unexpected" in found
