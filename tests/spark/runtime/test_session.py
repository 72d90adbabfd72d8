"""The session of the jobs: its Java, and one that is running already."""

import pytest
from pyspark.sql import SparkSession

from fanin.spark.runtime.session import quiet_session, session
from tests.spark.setting import setting


def test_its_heap_has_its_full_size_from_the_start(spark: SparkSession) -> None:
    # In a heap that grows as needed, the collector stops all tasks again and again.
    jvm = spark._jvm
    assert jvm is not None
    heap = jvm.java.lang.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage()
    assert heap.getInit() > 0.9 * heap.getMax()


def test_a_session_that_is_running_keeps_its_settings(spark: SparkSession) -> None:
    # Given a session with a time zone of its own, and without a setting that a job has
    zone, other = "spark.sql.session.timeZone", "spark.sql.adaptive.forceOptimizeSkewedJoin"
    with setting(spark, zone, "America/New_York"):
        # When it is asked for, then it is as it was
        assert session("mine", {other: "true"}).conf.get(zone) == "America/New_York"
        assert spark.conf.get(other) == "false"

        # And a job has its own settings for as long as it runs, although it fails
        found = []

        def fail() -> None:
            with quiet_session("job", {other: "true"}) as running:
                found.extend([running.conf.get(zone), running.conf.get(other)])
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert found == ["UTC", "true"]
        assert (spark.conf.get(zone), spark.conf.get(other)) == ("America/New_York", "false")
