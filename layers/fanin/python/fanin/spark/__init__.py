"""fanin on Spark: functions from DataFrame to DataFrame, and thin jobs on top of them.

Heavy work runs in Spark's own SQL functions, or on Arrow batches in numpy; tasks talk to AWS with boto3.
Everything works on Spark 3.5 and 4.1, with ANSI mode on or off; only the data source writer needs 4.0.

What users call is imported from here. As in ``fanin``, a name's module is loaded when the name is first used:
pyspark takes long to import, and the data source writer cannot be imported on Spark 3.5.
"""

from fanin.lazy import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
