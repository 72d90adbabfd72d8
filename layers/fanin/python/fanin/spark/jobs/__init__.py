"""The jobs, each ``python -m fanin.spark.jobs.<name>`` or the entry point of a spark-submit."""

from typing import Final

JOBS: Final = ("ack", "audit", "fan-out")
"""Names of the jobs; their modules have underscores for dashes."""
