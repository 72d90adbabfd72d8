"""fanin on Spark: functions from DataFrame to DataFrame, and thin jobs on top of them.

Heavy work runs in Spark's own SQL functions, or on Arrow batches in numpy; tasks talk to AWS with boto3.
Everything works on Spark 3.5 and 4.1, with ANSI mode on or off; only the data source writer needs 4.0.

What users call is imported from here. As in ``fanin``, a name's module is loaded when the name is first used:
pyspark takes long to import, and the data source writer cannot be imported on Spark 3.5.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fanin.spark.ack.acknowledged import Acknowledged
    from fanin.spark.ack.driver import acknowledge, forecast
    from fanin.spark.ack.forecast import Forecast
    from fanin.spark.ack.stream import ack_stream
    from fanin.spark.auditing.driver import Audited, audit
    from fanin.spark.fanout.bodies import with_body
    from fanin.spark.fanout.driver import fan_out
    from fanin.spark.fanout.failed_rows import FailedRows
    from fanin.spark.fanout.sent_rows import sent_rows
    from fanin.spark.fanout.sink import register
    from fanin.spark.fanout.summary import FannedOut
    from fanin.spark.inputs.formats import Dataset, DatasetFormat
    from fanin.spark.inputs.opening import Opened, open_input
    from fanin.spark.jobs.running import Job, Summary
    from fanin.spark.outcome.driver import outcomes
    from fanin.spark.runtime.reject_limit import RejectLimit
    from fanin.spark.runtime.results import Result
    from fanin.spark.runtime.service import Service
    from fanin.spark.runtime.session import quiet_session, session

__all__ = [
    "Acknowledged",
    "Audited",
    "Dataset",
    "DatasetFormat",
    "FailedRows",
    "FannedOut",
    "Forecast",
    "Job",
    "Opened",
    "RejectLimit",
    "Result",
    "Service",
    "Summary",
    "ack_stream",
    "acknowledge",
    "audit",
    "fan_out",
    "forecast",
    "open_input",
    "outcomes",
    "quiet_session",
    "register",
    "sent_rows",
    "session",
    "with_body",
]

_HOMES: Final = {
    "Acknowledged": "fanin.spark.ack.acknowledged",
    "Audited": "fanin.spark.auditing.driver",
    "Dataset": "fanin.spark.inputs.formats",
    "DatasetFormat": "fanin.spark.inputs.formats",
    "FailedRows": "fanin.spark.fanout.failed_rows",
    "FannedOut": "fanin.spark.fanout.summary",
    "Forecast": "fanin.spark.ack.forecast",
    "Job": "fanin.spark.jobs.running",
    "Opened": "fanin.spark.inputs.opening",
    "RejectLimit": "fanin.spark.runtime.reject_limit",
    "Result": "fanin.spark.runtime.results",
    "Service": "fanin.spark.runtime.service",
    "Summary": "fanin.spark.jobs.running",
    "ack_stream": "fanin.spark.ack.stream",
    "acknowledge": "fanin.spark.ack.driver",
    "audit": "fanin.spark.auditing.driver",
    "fan_out": "fanin.spark.fanout.driver",
    "forecast": "fanin.spark.ack.driver",
    "open_input": "fanin.spark.inputs.opening",
    "outcomes": "fanin.spark.outcome.driver",
    "quiet_session": "fanin.spark.runtime.session",
    "register": "fanin.spark.fanout.sink",
    "sent_rows": "fanin.spark.fanout.sent_rows",
    "session": "fanin.spark.runtime.session",
    "with_body": "fanin.spark.fanout.bodies",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'fanin.spark' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
