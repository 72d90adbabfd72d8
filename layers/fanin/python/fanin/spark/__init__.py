"""fanin on Spark: functions from DataFrame to DataFrame, and thin jobs on top of them.

What is heavy runs in Spark's own SQL functions, or as Arrow batches in numpy; what talks to AWS runs in the
tasks, with boto3. Everything works on Spark 3.5 and 4.1, with ANSI mode on or off; only the data source
writer needs 4.0.

What users call is imported from here. As in ``fanin``, a name's module is loaded with its first use: pyspark
takes long to import, and the data source writer does not import on Spark 3.5.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fanin.spark.ack.driver import Acknowledged, acknowledge
    from fanin.spark.ack.stream import ack_stream
    from fanin.spark.fan_out.bodies import with_body
    from fanin.spark.fan_out.sink import register_sink
    from fanin.spark.jobs.running import Job, Summary
    from fanin.spark.runtime.service import Service
    from fanin.spark.runtime.session import session

__all__ = [
    "Acknowledged",
    "Job",
    "Service",
    "Summary",
    "ack_stream",
    "acknowledge",
    "register_sink",
    "session",
    "with_body",
]

_HOMES: Final = {
    "Acknowledged": "fanin.spark.ack.driver",
    "Job": "fanin.spark.jobs.running",
    "Service": "fanin.spark.runtime.service",
    "Summary": "fanin.spark.jobs.running",
    "ack_stream": "fanin.spark.ack.stream",
    "acknowledge": "fanin.spark.ack.driver",
    "register_sink": "fanin.spark.fan_out.sink",
    "session": "fanin.spark.runtime.session",
    "with_body": "fanin.spark.fan_out.bodies",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fanin.spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
