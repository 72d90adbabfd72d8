"""Alarms and dashboard: they cover everything that can go wrong."""

import json
import re
from pathlib import Path

from fanin import names
from fanin.entry.partial_batch import ACKS
from fanin_cdk.ack_queue import TIMEOUT as ACK_TIMEOUT
from fanin_cdk.settings import Settings
from tests.infra.conftest import ALTERED


def alarms(fanin, **properties):
    found = fanin.of_type("AWS::CloudWatch::Alarm").values()
    return [alarm for alarm in found if properties.items() <= alarm.items()]


def watched(fanin, metric):
    return {
        dimension["Value"].get("Ref") or dimension["Value"]["Fn::GetAtt"][0]
        for alarm in alarms(fanin, MetricName=metric)
        for dimension in alarm["Dimensions"]
    }


def test_errors_of_functions_whose_messages_come_again_for_long_raise_an_alarm(fanin, tracker):
    """What fails in another function is in a watched dead-letter queue within the hour, or is a 5xx."""
    # Given the functions that are fed by a queue, a stream or asynchronously
    errors = watched(fanin, "Errors")
    dead = watched(fanin, "ApproximateNumberOfMessagesVisible")
    queues = fanin.of_type("AWS::SQS::Queue")
    covered = {}
    for source in fanin.of_type("AWS::Lambda::EventSourceMapping").values():
        function, place = source["FunctionName"]["Ref"], source["EventSourceArn"]["Fn::GetAtt"][0]
        if place in queues:
            policy = queues[place].get("RedrivePolicy")
            end = policy and policy["deadLetterTargetArn"]["Fn::GetAtt"][0]
            soon = bool(policy) and policy["maxReceiveCount"] * queues[place]["VisibilityTimeout"] <= 3_600
        else:
            end = source["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
            soon = True
        covered.setdefault(function, []).append(soon and end in dead)
    for invoked in fanin.of_type("AWS::Lambda::EventInvokeConfig").values():
        end = invoked["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
        covered.setdefault(invoked["FunctionName"]["Ref"], []).append(end in dead)
    # Then each of them has an alarm on its errors, or all that it cannot handle is where an alarm sees it
    for function, ends in covered.items():
        assert function in errors or all(ends), function
    # And of the two others one answers requests, whose faults raise an alarm, and one CloudFormation, which
    # says when the stack cannot be deleted
    others = {fanin.id_of(one.function) for one in (tracker.functions["api"], tracker.removal)}
    assert set(fanin.of_type("AWS::Lambda::Function")) == set(covered) | others
    assert alarms(fanin, MetricName="5xx")
    assert errors == {
        fanin.id_of(tracker.functions[name].function)
        for name in ("acks", "dead_letters", "targets", "redriver")
    }


def test_there_are_no_alarms_and_no_dashboard_if_the_settings_say_so(frugal):
    assert frugal.of_type("AWS::CloudWatch::Alarm") == {}
    assert frugal.of_type("AWS::CloudWatch::Dashboard") == {}


def test_readers_of_streams_raise_an_alarm_when_they_fall_behind(fanin, tracker):
    readers = {fanin.id_of(tracker.functions[name].function) for name in ("notifier", "settler", "directory")}
    assert watched(fanin, "IteratorAge") == readers
    assert {alarm["Threshold"] for alarm in alarms(fanin, MetricName="IteratorAge")} == {60_000}


def test_one_message_in_a_dead_end_raises_an_alarm(fanin, tracker):
    ends = [
        tracker.acks.dead_letters,
        tracker.parked,
        tracker.targets.jobs.dead_letters,
        tracker.timer_dead_letters,
        tracker.reaper_dead_letters,
        tracker.directory.registrar_dead_letters,
        tracker.directory.router_dead_letters,
        tracker.scatter.jobs.dead_letters,
        tracker.scatter.replies.dead_letters,
        tracker.redrives.jobs.dead_letters,
    ]
    ends += [retries.dead_letters for retries in tracker.retries.values()]
    metric = "ApproximateNumberOfMessagesVisible"
    assert watched(fanin, metric) == {fanin.id_of(queue) for queue in ends}
    assert {alarm["Threshold"] for alarm in alarms(fanin, MetricName=metric)} == {1}


def test_stuck_batches_raise_an_alarm_under_the_name_the_reaper_uses(altered):
    (alarm,) = alarms(altered, Namespace=names.METRICS_NAMESPACE, MetricName=names.METRIC_STUCK)
    assert alarm["Dimensions"] == [{"Name": "service", "Value": "shop"}]
    assert alarm["Period"] == 600


def test_messages_that_keep_being_postponed_raise_an_alarm(altered):
    """SQS leaves a message that was received three times out of the age of the oldest one."""
    # Given the alarm on the functions' own metric
    (alarm,) = alarms(altered, Namespace=names.METRICS_NAMESPACE, MetricName=names.METRIC_POSTPONED)
    # Then it counts the messages of this deployment
    assert alarm["Dimensions"] == [{"Name": "service", "Value": "shop"}]
    assert (alarm["Statistic"], alarm["Threshold"], alarm["EvaluationPeriods"]) == ("Sum", 1, 2)
    # And a message is postponed at least once in each of its periods
    assert alarm["Period"] >= ACKS.cap + ACK_TIMEOUT + Settings().ack_batching_window_seconds


def test_messages_in_flight_raise_an_alarm_before_sqs_hands_out_no_more(fanin, tracker):
    metric = "ApproximateNumberOfMessagesNotVisible"
    queues = (tracker.acks.queue, tracker.work.dead_letters, tracker.targets.jobs.queue)
    assert watched(fanin, metric) == {fanin.id_of(queue) for queue in queues}
    assert {alarm["Threshold"] for alarm in alarms(fanin, MetricName=metric)} == {100_000}


def test_queues_whose_function_does_not_keep_up_raise_an_alarm(fanin, tracker):
    queues = (
        *(tracker.acks.queue, tracker.work.dead_letters, tracker.targets.jobs.queue),
        *(tracker.scatter.jobs.queue, tracker.scatter.replies.queue),
        tracker.buffers.dead_letters,
        tracker.redrives.jobs.queue,
    )
    late = alarms(fanin, MetricName="ApproximateAgeOfOldestMessage")
    assert watched(fanin, "ApproximateAgeOfOldestMessage") == {fanin.id_of(queue) for queue in queues}
    assert all(
        "leaving out those that were received three times" in alarm["AlarmDescription"] for alarm in late
    )


def test_a_batch_on_which_two_runs_of_the_reaper_fail_raises_an_alarm(altered):
    (alarm,) = alarms(altered, Namespace=names.METRICS_NAMESPACE, MetricName=names.METRIC_UNREAPED)
    assert alarm["Dimensions"] == [{"Name": "service", "Value": "shop"}]
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["Threshold"]) == (600, 2, 1)


def test_no_data_is_no_alarm(fanin):
    every = alarms(fanin)
    assert every == alarms(fanin, TreatMissingData="notBreaching")
    assert all(alarm["AlarmDescription"].startswith("fanin: ") for alarm in every)


def test_alarms_tell_the_topic_of_the_settings(fanin, altered):
    assert all("AlarmActions" not in alarm for alarm in alarms(fanin))
    told = alarms(altered)
    assert told
    assert all(alarm["AlarmActions"] == [ALTERED["alarm_topic_arn"]] for alarm in told)


def test_the_dashboard_shows_all_metrics_of_the_functions(fanin):
    (dashboard,) = fanin.of_type("AWS::CloudWatch::Dashboard").values()
    body = json.dumps(dashboard["DashboardBody"])
    metrics = {value for name, value in vars(names).items() if name.startswith("METRIC_")}
    assert {metric for metric in metrics if metric not in body} == set()


def test_the_dashboard_shows_every_queue_that_raises_an_alarm_and_the_work(fanin, tracker):
    (dashboard,) = fanin.of_type("AWS::CloudWatch::Dashboard").values()
    parts = dashboard["DashboardBody"]["Fn::Join"][1]
    shown = {part["Fn::GetAtt"][0] for part in parts if isinstance(part, dict) and "Fn::GetAtt" in part}
    for metric in ("ApproximateNumberOfMessagesVisible", "ApproximateAgeOfOldestMessage"):
        assert watched(fanin, metric) - shown == set()
    assert fanin.id_of(tracker.work.queue) in shown


def test_the_page_of_metrics_names_the_alarms_on_them_and_the_dashboard_draws_all(fanin):
    # Given the rows of the page, by the name of the metric
    page = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
    rows = dict(re.findall(r"^\| `(\w+)` (\|.+)$", page.read_text(), re.MULTILINE))
    # When they are compared with the template
    on = {alarm["MetricName"] for alarm in alarms(fanin, Namespace=names.METRICS_NAMESPACE)}
    (dashboard,) = fanin.of_type("AWS::CloudWatch::Dashboard").values()
    # Then each alarm is told, and each metric is drawn
    assert {metric for metric, row in rows.items() if "alarms.md#" in row} == on
    assert [metric for metric in rows if f'"{metric}"' not in str(dashboard["DashboardBody"])] == []
