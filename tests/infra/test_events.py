"""What invokes functions, and where records and messages go that they cannot handle."""

import json

import pytest

from fanin import names
from fanin.app.directory import routing
from fanin.app.directory import service as directory
from fanin.domain.batch import LIVE, State
from fanin.domain.patterns import matches
from fanin_cdk.events import DIRECTORY_CHANGED, LIVE_STATES


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
        ("notifier", "batches", None),
        ("settler", "words", {"dynamodb": {"NewImage": {"word": {"N": ["0"]}}}}),
        (
            "directory",
            "directory",
            {"dynamodb": {"Keys": {"topic": {"S": [{"prefix": "topic/"}, "routes"]}}}},
        ),
    ],
)
def test_a_stream_wakes_its_function_only_for_what_matters(fanin, tracker, name, table, pattern):
    # Given the mapping of the table's stream
    source = mappings(fanin, tracker, name)[arn(fanin, tracker.storage.tables[table], "StreamArn")]
    # Then it filters, starts at the oldest record, and leaves a note of each record that it gives up
    given = [json.loads(one["Pattern"]) for one in source["FilterCriteria"]["Filters"]]
    assert pattern is None or given == [pattern]
    # And it asks for no more than Lambda takes without a higher quota, and only of what Lambda filters by
    assert len(given) <= 5
    assert all(one.keys() == {"dynamodb"} for one in given)
    assert source["StartingPosition"] == "TRIM_HORIZON"
    assert source["BisectBatchOnFunctionError"] is True
    assert source["MaximumRetryAttempts"] > 0
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    dead = tracker.retries[name].dead_letters
    assert json.dumps(source["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"]) == arn(
        fanin, dead
    )


def batch_row(state, **numbers):
    return {"state": {"S": state}, **{name: {"N": str(value)} for name, value in numbers.items()}}


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, batch_row("open"), False, id="made"),
        pytest.param(batch_row("open"), batch_row("closed"), False, id="closed"),
        pytest.param(batch_row("open"), batch_row("open", failing_at=1), True, id="fails"),
        pytest.param(batch_row("open", failing_at=1), batch_row("closed", failing_at=1), False, id="failed"),
        pytest.param(
            batch_row("closed", failing_at=1),
            batch_row("closed", failing_at=1, waiting_at=2),
            True,
            id="waits",
        ),
        pytest.param(batch_row("closed"), batch_row("closed", milestone=50), True, id="milestone"),
        pytest.param(batch_row("closed"), batch_row("complete"), True, id="ended"),
        pytest.param(
            batch_row("closed", failing_at=1), batch_row("orphaned", failing_at=1), True, id="gave-up"
        ),
        pytest.param(
            batch_row("complete", expires_at=9), batch_row("complete", expires_at=1), True, id="removed"
        ),
        pytest.param(batch_row("complete", failing_at=1), None, False, id="expired"),
        pytest.param(batch_row("open", milestone=50), None, False, id="expired-alive"),
    ],
)
def test_the_notifier_wakes_for_what_is_told_of_a_batch_alone(fanin, tracker, old, new, wakes):
    source = mappings(fanin, tracker, "notifier")[arn(fanin, tracker.storage.batches, "StreamArn")]
    filters = [json.loads(one["Pattern"]) for one in source["FilterCriteria"]["Filters"]]
    images = {"OldImage": old, "NewImage": new}
    record = {"dynamodb": {name: image for name, image in images.items() if image is not None}}
    assert any(matches(one, record) for one in filters) is wakes


def test_the_filter_knows_all_states():
    assert set(LIVE_STATES) == {state.value for state in LIVE}
    assert set(names.TERMINAL_STATES) == {state.value for state in State if state.terminal}


def test_the_filter_of_the_directory_knows_its_namespaces():
    namespaces = DIRECTORY_CHANGED["dynamodb"]["Keys"]["topic"]["S"]
    assert namespaces == [{"prefix": directory.TOPIC_PREFIX}, routing.NAMESPACE]


@pytest.mark.parametrize("name", ["notifier", "settler", "directory"])
def test_a_parked_record_comes_back_to_the_function_that_parked_it(fanin, tracker, name):
    queue = tracker.retries[name].queue
    assert arn(fanin, queue) in mappings(fanin, tracker, name)
    environment = fanin.properties(tracker.functions[name].function)["Environment"]["Variables"]
    assert environment[names.ENV_RETRY_QUEUE_URL] == {"Ref": fanin.id_of(queue)}


def test_acks_wait_for_company(frugal):
    (source,) = mappings(frugal, frugal.stack.tracker, "acks").values()
    assert (source["BatchSize"], source["MaximumBatchingWindowInSeconds"]) == (500, 20)


def test_dead_messages_of_the_work_queue_and_of_buffers_go_to_their_function(fanin, tracker):
    queues = {arn(fanin, tracker.work.dead_letters), arn(fanin, tracker.buffers.dead_letters)}
    assert set(mappings(fanin, tracker, "dead_letters")) == queues
    environment = fanin.properties(tracker.functions["dead_letters"].function)["Environment"]["Variables"]
    assert environment[names.ENV_RETRY_QUEUE_URL] == {"Ref": fanin.id_of(tracker.parked)}


def test_every_source_reports_failures_one_by_one(fanin):
    for source in fanin.of_type("AWS::Lambda::EventSourceMapping").values():
        assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("name", ["timer", "reaper", "registrar", "router"])
def test_an_asynchronous_run_that_fails_for_good_leaves_its_event(fanin, tracker, name):
    function = {"Ref": fanin.id_of(tracker.functions[name].function)}
    (config,) = [
        c for c in fanin.of_type("AWS::Lambda::EventInvokeConfig").values() if c["FunctionName"] == function
    ]
    dead = {
        "timer": tracker.timer_dead_letters,
        "reaper": tracker.reaper_dead_letters,
        "registrar": tracker.directory.registrar_dead_letters,
        "router": tracker.directory.router_dead_letters,
    }[name]
    assert config["DestinationConfig"]["OnFailure"]["Destination"] == {
        "Fn::GetAtt": [fanin.id_of(dead), "Arn"]
    }


def rules_of(fanin, name):
    """The rules that invoke a function; each has a dead-letter queue for events that do not reach it."""
    arn = {"Fn::GetAtt": [fanin.id_of(fanin.stack.tracker.functions[name].function), "Arn"]}
    rules = fanin.of_type("AWS::Events::Rule").values()
    found = [rule for rule in rules if [target["Arn"] for target in rule["Targets"]] == [arn]]
    assert all("DeadLetterConfig" in rule["Targets"][0] for rule in found)
    return found


@pytest.mark.parametrize(
    ("given", "name", "rate"),
    [
        ("tokens", "reaper", "rate(1 minute)"),
        ("tokens", "registrar", "rate(1 minute)"),
        ("altered", "reaper", "rate(10 minutes)"),
        ("altered", "registrar", "rate(1 hour)"),
    ],
)
def test_the_reaper_and_the_registrar_run_at_their_rates(request, given, name, rate):
    fanin = request.getfixturevalue(given)
    (rule,) = [rule for rule in rules_of(fanin, name) if "ScheduleExpression" in rule]
    assert rule["ScheduleExpression"] == rate
    assert "EventBusName" not in rule


def test_the_registrar_hears_of_instances_that_come_and_go(fanin, tracker):
    (rule,) = [rule for rule in rules_of(fanin, "registrar") if "EventPattern" in rule]
    assert rule["EventBusName"] == {"Ref": fanin.id_of(tracker.bus)}
    assert rule["EventPattern"] == {"detail-type": ["Instance Created", "Instance Destroyed"]}


@pytest.mark.parametrize(
    ("given", "rules", "queues"),
    [("fanin", 0, 0), ("altered", 1, 0), ("tokens", 1, 1)],
    ids=["ignore", "count", "keep"],
)
def test_events_that_match_no_route_are_seen_as_the_settings_say(request, given, rules, queues):
    # Given a setting
    fanin = request.getfixturevalue(given)
    tracker = fanin.stack.tracker
    # Then the router sees every event of others, or none but those of its routes
    found = rules_of(fanin, "router")
    assert [rule["EventPattern"] for rule in found] == rules * [
        {
            "source": [{"anything-but": ["fanin"]}],
            "detail-type": [{"anything-but": ["Instance Created", "Instance Destroyed"]}],
        }
    ]
    # And it has a queue for unrouted events, or has not
    environment = fanin.properties(tracker.functions["router"].function)["Environment"]["Variables"]
    known = [{"Ref": fanin.id_of(tracker.directory.unrouted)}] if queues else []
    assert [environment[name] for name in environment if name == names.ENV_UNROUTED_QUEUE_URL] == known


def test_only_rules_of_routes_and_the_one_for_all_events_may_call_the_router(tokens):
    fanin = tokens
    tracker = fanin.stack.tracker
    router = {"Fn::GetAtt": [fanin.id_of(tracker.functions["router"].function), "Arn"]}
    allowed = [
        json.dumps(permission["SourceArn"])
        for permission in fanin.of_type("AWS::Lambda::Permission").values()
        if permission["FunctionName"] == router and "Ref" not in permission["SourceArn"]
    ]
    assert len(allowed) == 2
    assert sum(":rule/fanin/fanin-route-*" in arn for arn in allowed) == 1


def test_the_bus_and_the_group_of_schedules_are_named_after_the_prefix(altered):
    (bus,) = altered.of_type("AWS::Events::EventBus").values()
    (group,) = altered.of_type("AWS::Scheduler::ScheduleGroup").values()
    assert (bus["Name"], group["Name"]) == ("shop", "shop")


def test_ends_are_announced_ten_at_a_time_and_what_has_an_order_keeps_it(fanin, tracker):
    parallel = {
        name: source.get("ParallelizationFactor", 1)
        for name in ("notifier", "settler", "directory")
        for source in mappings(fanin, tracker, name).values()
        if "StartingPosition" in source
    }
    assert parallel == {"notifier": 10, "settler": 1, "directory": 1}


def test_queues_invoke_as_often_as_the_settings_say(frugal):
    most = {
        name: [
            source.get("ScalingConfig", {}).get("MaximumConcurrency")
            for source in mappings(frugal, frugal.stack.tracker, name).values()
        ]
        for name in ("acks", "scatter", "replies", "dead_letters", "notifier")
    }
    assert most == {
        "acks": [40], "scatter": [7], "replies": [7], "dead_letters": [7, 7], "notifier": [None, None]
    }  # fmt: skip


def test_the_ack_queue_allows_for_a_day_of_overload_and_the_others_for_a_fault(fanin, tracker):
    acks = fanin.properties(tracker.acks.queue)["RedrivePolicy"]["maxReceiveCount"]
    assert acks * 450 > 86_400  # half of the longest pause, on average
    others = [queue.queue for queue in (tracker.work, tracker.scatter.jobs, *tracker.retries.values())]
    assert {fanin.properties(queue)["RedrivePolicy"]["maxReceiveCount"] for queue in others} == {5, 10}
