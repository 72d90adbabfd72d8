"""The CDK app: a stack with one tracker and, if asked for, one for its Spark jobs.

docs/reference/settings.md has its settings.
"""

import json
from pathlib import Path

import aws_cdk as cdk
import cdk_nag

from fanin_cdk import FaninStack, PipelineStack, Settings

# The CDK command line reads cdk.json; `python app.py` alone should see the same context.
CONTEXT = json.loads(Path(__file__).with_name("cdk.json").read_text())["context"]


def main() -> None:
    app = cdk.App(context=CONTEXT)
    settings = Settings.from_context(app.node)
    stack = FaninStack(app, settings.prefix, settings=settings)
    if settings.pipeline:
        PipelineStack(app, f"{settings.prefix}-pipeline", tracker=stack.tracker)
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    app.synth()


if __name__ == "__main__":
    main()
