"""How many tasks a cluster may grow to run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fanin.spark.runtime.session import UNBOUNDED, most_tasks

DYNAMIC = {"spark.dynamicAllocation.enabled": "true"}


@pytest.mark.parametrize(
    ("conf", "now", "most"),
    [
        ({}, 2, 2),
        ({"spark.dynamicAllocation.enabled": "false", "spark.dynamicAllocation.maxExecutors": "9"}, 8, 8),
        (DYNAMIC, 2, UNBOUNDED),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "infinity"}, 2, UNBOUNDED),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "2147483647"}, 2, UNBOUNDED),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "8", "spark.executor.cores": "4"}, 2, 32),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "8", "spark.executor.cores": "4"}, 100, 100),
        (
            {
                **DYNAMIC,
                "spark.dynamicAllocation.maxExecutors": "8",
                "spark.executor.cores": "4",
                "spark.task.cpus": "2",
            },
            2,
            16,
        ),
        ({**DYNAMIC, "spark.dynamicAllocation.maxExecutors": "8"}, 2, 8),
    ],
)
def test_a_cluster_counts_as_it_may_grow(conf: dict[str, str], now: int, most: int) -> None:
    context = SimpleNamespace(defaultParallelism=now, getConf=lambda: conf)
    assert most_tasks(SimpleNamespace(sparkContext=context)) == most
