"""The CDK app of the smoke test: fanin, the catalog example, and the Spark jobs if they are asked for."""

import sys
from pathlib import Path

import aws_cdk as cdk

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the examples are not installed

from examples.catalog.stack import CatalogStack
from fanin_cdk import FaninStack, PipelineStack, Settings

TAG = "fanin-smoke"


def main() -> None:
    app = cdk.App()
    settings = Settings.from_context(app.node)
    fanin = FaninStack(app, settings.prefix, settings=settings)
    CatalogStack(app, f"{settings.prefix}-catalog", tracker=fanin.tracker)
    if settings.pipeline:
        PipelineStack(app, f"{settings.prefix}-pipeline", tracker=fanin.tracker)
    cdk.Tags.of(app).add(TAG, settings.prefix)
    app.synth()


if __name__ == "__main__":
    main()
