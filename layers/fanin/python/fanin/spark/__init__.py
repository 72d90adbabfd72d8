"""fanin on Spark: functions from DataFrame to DataFrame, and thin jobs on top of them.

What is heavy runs in Spark's own SQL functions, or as Arrow batches in numpy; what talks to AWS runs in the
tasks, with boto3. Everything works on Spark 3.5 and 4.1, with ANSI mode on or off; only the data source
writer needs 4.0.
"""
