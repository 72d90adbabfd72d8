"""cdk-nag and cfn-lint find nothing, although they would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import aws_cdk as cdk
import cdk_nag
import pytest
from aws_cdk import aws_sqs as sqs

from fanin_cdk import FaninStack, Settings

ROOT = Path(__file__).resolve().parents[2]
JWT = {"auth": "jwt", "jwt_issuer": "https://id.example.com/", "jwt_audience": "fanin"}


def checked(outdir: Path, **settings) -> tuple[cdk.App, FaninStack]:
    app = cdk.App(outdir=str(outdir), context={"aws:cdk:bundling-stacks": []})
    stack = FaninStack(app, "fanin", settings=Settings(**settings))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    return app, stack


HOOKS = {"webhook_hosts": "hooks.example.com"}
KEY = {"kms_key_arn": "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"}


@pytest.mark.parametrize(
    "settings",
    [
        JWT,
        {"auth": "none"},
        {"local": True},
        HOOKS,
        {"console": True},
        {"console": True, "console_write": True},
        {"access_log": False, "tracing": "xray", "alarms": False, "dashboard": False},
        KEY,
    ],
    ids=["jwt", "none", "local", "webhooks", "console", "buttons", "frugal", "key"],
)
def test_cdk_nag_finds_nothing(tmp_path, settings):
    app, _ = checked(tmp_path, **settings)
    app.synth()


def test_cdk_nag_would_find_something(tmp_path):
    # Given a stack with a queue that nobody checks
    app, stack = checked(tmp_path)
    sqs.Queue(stack, "Bad")
    # Then synthesis fails, and names the queue only
    with pytest.raises(RuntimeError) as failed:
        app.synth()
    assert "fanin/Bad/Resource" in str(failed.value)
    assert "fanin/Tracker" not in str(failed.value)


def test_the_app_synthesizes_as_cdk_json_says_and_cfn_lint_finds_nothing(tmp_path):
    # Given the command that the CDK runs, with another prefix in the context
    command = json.loads((ROOT / "cdk.json").read_text())["app"]
    context = json.dumps({"prefix": "shop", "aws:cdk:bundling-stacks": []})
    environment = os.environ | {
        "CDK_OUTDIR": str(tmp_path),
        "CDK_CONTEXT_JSON": context,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    # When it is run by a shell, cdk-nag included
    done = subprocess.run(  # noqa: S602
        command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    # Then the template passes cfn-lint
    lint = subprocess.run(  # noqa: S603
        [Path(sys.executable).with_name("cfn-lint"), str(tmp_path / "shop.template.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (lint.returncode, lint.stdout) == (0, "")
