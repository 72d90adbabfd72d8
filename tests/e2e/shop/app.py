"""A CDK app as users write it: a tracker that keeps unrouted events, and a function on a buffer's queue."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT))

import aws_cdk as cdk  # noqa: E402
from aws_cdk import aws_lambda as lambda_  # noqa: E402

from fanin_cdk import FaninStack, Settings  # noqa: E402
from fanin_cdk.layers import RUNTIME, architecture  # noqa: E402
from fanin_cdk.tracked_queue import TrackedQueue  # noqa: E402


class Shop(FaninStack):
    """fanin, and a renderer that slows its producers down to its own pace."""

    def __init__(self, scope: cdk.App, name: str, *, settings: Settings) -> None:
        super().__init__(scope, name, settings=settings)
        renderer = lambda_.Function(
            self,
            "Renderer",
            runtime=RUNTIME,
            handler="handler.handler",
            code=lambda_.Code.from_asset(str(Path(__file__).with_name("renderer"))),
            architecture=architecture(settings),
        )
        renders = TrackedQueue(
            self,
            "Renders",
            tracker=self.tracker,
            visibility_timeout=cdk.Duration.seconds(15),
            max_receive_count=1,
            channel=True,
        )
        renders.consume(renderer, max_concurrency=2)
        for output, queue in (("Renders", renders.queue), ("Unrouted", self.tracker.directory.unrouted)):
            cdk.CfnOutput(self, f"{output}Url", value=queue.queue_url)


if __name__ == "__main__":
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context | json.loads(os.environ["CDK_CONTEXT_JSON"]))
    Shop(app, "shop", settings=Settings.from_context(app.node))
    app.synth()
