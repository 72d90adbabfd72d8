"""fanin's infrastructure, as CDK constructs for its own stack and for other people's apps.

``FaninTracker`` is the whole service, ``TrackedQueue`` a queue whose dead messages fail their items, and
``FaninStack`` the service as a stack of its own; ``PipelineStack`` is the Spark jobs beside it.
"""

from infra.pipeline import Pipeline
from infra.settings import BadSetting, Settings
from infra.stacks import FaninStack, PipelineStack
from infra.tracked_queue import TrackedQueue
from infra.tracker import FaninTracker

__all__ = [
    "BadSetting",
    "FaninStack",
    "FaninTracker",
    "Pipeline",
    "PipelineStack",
    "Settings",
    "TrackedQueue",
]
