from __future__ import annotations

from fanin.entry.in_memory.mappings import InMemoryLambda, InMemoryMetrics

ARN = "arn:aws:sqs:memory:000000000000:work"


def test_a_queue_has_the_functions_that_consume_it() -> None:
    mappings = InMemoryLambda()

    def importer(_event: object, _context: object) -> None: ...

    mappings.add("memory://sqs/000000000000/work", importer)
    mappings.add("memory://sqs/000000000000/other", importer)

    (found,) = mappings.list_event_source_mappings(EventSourceArn=ARN)["EventSourceMappings"]
    assert found["FunctionArn"].endswith(":function:importer")
    assert found["State"] == "Enabled"


def test_nothing_is_throttled_in_memory() -> None:
    assert InMemoryMetrics().get_metric_data(MetricDataQueries=[]) == {"MetricDataResults": []}
