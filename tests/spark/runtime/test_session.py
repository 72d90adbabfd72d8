"""The Java of a session that was not started by spark-submit."""

from __future__ import annotations

from pyspark.sql import SparkSession


def test_its_heap_has_its_full_size_from_the_start(spark: SparkSession) -> None:
    # In a heap that grows as needed, the collector stops all tasks again and again.
    jvm = spark._jvm
    assert jvm is not None
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    assert heap.getInit() > 0.9 * heap.getMax()
