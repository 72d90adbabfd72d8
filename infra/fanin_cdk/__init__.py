"""fanin's infrastructure as CDK constructs, for its own stacks and for other CDK apps.

``FaninTracker`` is the whole service, and ``FaninStack`` a stack that contains it. ``TrackedQueue`` is a
queue whose dead-lettered messages fail their items. ``FanOutAndWait`` is a state of
Step Functions that waits for a batch. ``Pipeline`` runs the Spark jobs, in a ``PipelineStack``;
``PipelineNetwork`` is a VPC for them. ``CustomerKey`` encrypts with a key of
one's own.
"""

from fanin_cdk.assets import VersionMismatch
from fanin_cdk.consumers import UnfitFunction
from fanin_cdk.fan_out_and_wait import FanOutAndWait
from fanin_cdk.keys import CustomerKey
from fanin_cdk.pipeline import Pipeline
from fanin_cdk.pipeline_network import PipelineNetwork
from fanin_cdk.settings import BadSetting, Settings
from fanin_cdk.stacks import FaninStack, PipelineStack
from fanin_cdk.tracked_queue import TrackedQueue
from fanin_cdk.tracker import FaninTracker

__all__ = [
    "BadSetting",
    "CustomerKey",
    "FanOutAndWait",
    "FaninStack",
    "FaninTracker",
    "Pipeline",
    "PipelineNetwork",
    "PipelineStack",
    "Settings",
    "TrackedQueue",
    "UnfitFunction",
    "VersionMismatch",
]
