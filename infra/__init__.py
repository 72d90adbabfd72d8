"""fanin's infrastructure as CDK constructs, for its own stacks and for other CDK apps.

``FaninTracker`` is the whole service, and ``FaninStack`` a stack that contains it. ``TrackedQueue`` is a
queue whose dead-lettered messages fail their items. ``Pipeline`` runs the Spark jobs, in a ``PipelineStack``.
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
