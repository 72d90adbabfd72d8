"""What sets functions off, and what happens to what they cannot handle."""

from __future__ import annotations

import json

import pytest

from fanin import names
from fanin.domain.batch import LIVE, State
from infra.events import LIVE_STATES


def mappings(fanin, tracker, name):
    function = {"Ref": fanin.id_of(tracker.functions[name].function)}
    sources = fanin.of_type("AWS::Lambda::EventSourceMapping").values()
    found = [source for source in sources if source["FunctionName"] == function]
    return {json.dumps(source["EventSourceArn"]["Fn::GetAtt"]): source for source in found}


def arn(fanin, construct, attribute="Arn"):
    return json.dumps([fanin.id_of(construct), attribute])


@pytest.mark.parametrize(
    ("name", "table", "pattern"),
    [
        (
            "notifier",
            "batches",
            {
                "dynamodb": {
                    "OldImage": {"state": {"S": ["open", "closed"]}},
                    "NewImage": {"state": {"S": ["complete", "timed_out", "cancelled", "orphaned"]}},
                }
            },
        ),
        ("settler", "words", {"dynamodb": {"NewImage": {"word": {"N": ["0"]}}}}),
    ],
)
def test_a_stream_wakes_its_function_only_for_what_matters(fanin, tracker, name, table, pattern):
    # Given the mapping of the table's stream
    source = mappings(fanin, tracker, name)[arn(fanin, tracker.storage.tables[table], "StreamArn")]
    # Then it filters, misses nothing from the start, and gives up on nothing without a trace
    (given,) = source["FilterCriteria"]["Filters"]
    assert json.loads(given["Pattern"]) == pattern
    assert source["StartingPosition"] == "TRIM_HORIZON"
    assert source["BisectBatchOnFunctionError"] is True
    assert source["MaximumRetryAttempts"] > 0
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    dead = tracker.retries[name].dead_letters
    assert json.dumps(source["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"]) == arn(
        fanin, dead
    )


def test_the_filter_knows_all_states():
    assert set(LIVE_STATES) == {state.value for state in LIVE}
    assert set(names.TERMINAL_STATES) == {state.value for state in State if state.terminal}


@pytest.mark.parametrize("name", ["notifier", "settler"])
def test_a_parked_record_comes_back_to_the_function_that_parked_it(fanin, tracker, name):
    queue = tracker.retries[name].queue
    assert arn(fanin, queue) in mappings(fanin, tracker, name)
    environment = fanin.properties(tracker.functions[name].function)["Environment"]["Variables"]
    assert environment[names.ENV_RETRY_QUEUE_URL] == {"Ref": fanin.id_of(queue)}


def test_acks_wait_for_company(synthesize):
    fanin = synthesize(ack_batch_size=500, ack_batching_window_seconds=20)
    tracker = fanin.stack.tracker
    (source,) = mappings(fanin, tracker, "acks").values()
    assert (source["BatchSize"], source["MaximumBatchingWindowInSeconds"]) == (500, 20)


def test_dead_messages_of_the_work_queue_go_to_their_function(fanin, tracker):
    assert set(mappings(fanin, tracker, "dead_letters")) == {arn(fanin, tracker.work.dead_letters)}
    environment = fanin.properties(tracker.functions["dead_letters"].function)["Environment"]["Variables"]
    assert environment[names.ENV_RETRY_QUEUE_URL] == {"Ref": fanin.id_of(tracker.parked)}


def test_every_source_reports_failures_one_by_one(fanin):
    for source in fanin.of_type("AWS::Lambda::EventSourceMapping").values():
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("name", ["timer", "reaper"])
def test_an_asynchronous_run_that_fails_for_good_leaves_its_event(fanin, tracker, name):
    function = {"Ref": fanin.id_of(tracker.functions[name].function)}
    (config,) = [
        c for c in fanin.of_type("AWS::Lambda::EventInvokeConfig").values() if c["FunctionName"] == function
    ]
    dead = {"timer": tracker.timer_dead_letters, "reaper": tracker.reaper_dead_letters}[name]
    assert config["DestinationConfig"]["OnFailure"]["Destination"] == {
        "Fn::GetAtt": [fanin.id_of(dead), "Arn"]
    }


@pytest.mark.parametrize(("minutes", "rate"), [(1, "rate(1 minute)"), (60, "rate(1 hour)")])
def test_the_reaper_runs_at_its_rate(synthesize, minutes, rate):
    fanin = synthesize(reaper_rate_minutes=minutes)
    (rule,) = fanin.of_type("AWS::Events::Rule").values()
    assert rule["ScheduleExpression"] == rate
    (target,) = rule["Targets"]
    reaper = fanin.id_of(fanin.stack.tracker.functions["reaper"].function)
    assert target["Arn"] == {"Fn::GetAtt": [reaper, "Arn"]}
    assert "DeadLetterConfig" in target


def test_the_bus_and_the_group_of_schedules_are_named_after_the_prefix(synthesize):
    fanin = synthesize(prefix="shop")
    (bus,) = fanin.of_type("AWS::Events::EventBus").values()
    (group,) = fanin.of_type("AWS::Scheduler::ScheduleGroup").values()
    assert (bus["Name"], group["Name"]) == ("shop", "shop")
