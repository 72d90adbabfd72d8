"""The app of docs/how-to/deployment.md is small, and has a stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fanin import names
from tests.docs import pages

APP, HANDLER, _ = pages.code("how-to/deployment.md")


@pytest.mark.soak
def test_it_runs(tmp_path):
    # Given the app as it stands, and its consumer; assets are not bundled, only described
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "consumer").mkdir()
    (tmp_path / "consumer" / "handler.py").write_text(HANDLER)
    environment = os.environ | {
        "CDK_OUTDIR": str(tmp_path / "out"),
        "CDK_CONTEXT_JSON": json.dumps({"aws:cdk:bundling-stacks": [], "prefix": "mine"}),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }

    # When it runs
    done = subprocess.run(
        [sys.executable, "app.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    # Then it has a stack with a rule on fanin's bus, which follows the settings of the context
    assert done.returncode == 0, done.stderr
    template = json.loads((tmp_path / "out" / "shop.template.json").read_text())["Resources"].values()
    rules = [one["Properties"] for one in template if one["Type"] == "AWS::Events::Rule"]
    pattern = {"source": [names.EVENT_SOURCE], "detail-type": [names.DETAIL_TYPES["complete"]]}
    assert pattern in [rule.get("EventPattern") for rule in rules]
    buses = [one["Properties"]["Name"] for one in template if one["Type"] == "AWS::Events::EventBus"]
    assert buses == ["mine"]


def test_it_is_a_small_app():
    assert len([line for line in APP.splitlines() if line]) <= 25
