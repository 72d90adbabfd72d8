"""The jobs, each ``python -m fanin.spark.jobs.<name>`` or the entry point of a spark-submit."""

from enum import StrEnum


class JobName(StrEnum):
    """Names of the jobs; their modules have underscores for dashes."""

    ACK = "ack"
    AUDIT = "audit"
    FAN_OUT = "fan-out"
