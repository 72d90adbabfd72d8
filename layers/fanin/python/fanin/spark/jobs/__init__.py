"""The jobs, each ``python -m fanin.spark.jobs.<name>`` or the entry point of a spark-submit."""

from enum import StrEnum


class JobName(StrEnum):
    """What the jobs are called; the module of one has underscores for dashes."""

    ACK = "ack"
    AUDIT = "audit"
    FAN_OUT = "fan-out"
    REPORT = "report"
