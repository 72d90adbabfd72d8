"""The function of targets: its queue, the secret of webhooks, and what it may do."""

import pytest

from fanin import names
from fanin_cdk import BadSetting, Settings


def environment(fanin, name: str) -> dict[str, object]:
    function = fanin.stack.tracker.functions[name].function
    return fanin.properties(function)["Environment"]["Variables"]


def test_without_allowed_hosts_there_is_no_secret_and_nobody_may_read_one(fanin):
    assert fanin.of_type("AWS::SecretsManager::Secret") == {}
    statements = str(fanin.statements(fanin.stack.tracker.functions["targets"].function.role))
    assert "secretsmanager" not in statements
    for name in ("api", "notifier", "targets"):
        assert names.ENV_WEBHOOK_HOSTS not in environment(fanin, name)


def test_with_allowed_hosts_there_is_a_secret_and_those_who_check_targets_know_the_hosts(tokens):
    fanin = tokens
    # Given the secret: letters and digits, which are base64, as long as three times eleven bytes
    (properties,) = fanin.of_type("AWS::SecretsManager::Secret").values()
    generated = properties["GenerateSecretString"]
    assert (generated["ExcludePunctuation"], generated["IncludeSpace"]) == (True, False)
    assert generated["PasswordLength"] % 4 == 0
    # Then those who check targets know the hosts
    for name in ("api", "targets"):
        assert environment(fanin, name)[names.ENV_WEBHOOK_HOSTS] == "hooks.example.com,*.example.org"


def test_only_a_stack_on_this_machine_calls_this_machine(fanin, local):
    assert names.ENV_WEBHOOK_LOOPBACK not in environment(fanin, "targets")
    assert environment(local, "targets")[names.ENV_WEBHOOK_LOOPBACK] == "true"


def test_a_job_is_alone_in_its_invocation_and_is_tried_for_more_than_a_day(fanin):
    tracker = fanin.stack.tracker
    queue = fanin.properties(tracker.targets.jobs.queue)
    assert queue["RedrivePolicy"]["maxReceiveCount"] == names.TARGET_TRIES
    arn = {"Fn::GetAtt": [fanin.id_of(tracker.targets.jobs.queue), "Arn"]}
    (source,) = [
        one
        for one in fanin.of_type("AWS::Lambda::EventSourceMapping").values()
        if one["EventSourceArn"] == arn
    ]
    assert source["BatchSize"] == 1
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize(("given", "at_once"), [("fanin", 100), ("frugal", 7), ("altered", 300)])
def test_webhooks_that_do_not_answer_leave_invocations_to_other_functions(request, given, at_once):
    fanin = request.getfixturevalue(given)
    arn = {"Fn::GetAtt": [fanin.id_of(fanin.stack.tracker.targets.jobs.queue), "Arn"]}
    (source,) = [
        one
        for one in fanin.of_type("AWS::Lambda::EventSourceMapping").values()
        if one["EventSourceArn"] == arn
    ]
    assert source["ScalingConfig"] == {"MaximumConcurrency": at_once}


def test_a_parked_target_raises_an_alarm(fanin):
    alarms = fanin.of_type("AWS::CloudWatch::Alarm").values()
    (alarm,) = [one for one in alarms if one.get("MetricName") == names.METRIC_TARGETS_PARKED]
    assert (alarm["Threshold"], alarm["Statistic"], alarm["EvaluationPeriods"]) == (1, "Sum", 1)


@pytest.mark.parametrize(
    "hosts",
    ["https://hooks.example.com", "hooks.example.com/x", "*", "*.*.com", "a b", "a..b", "a:port", ","],
)
def test_malformed_hosts_are_refused(hosts):
    with pytest.raises(BadSetting, match="webhook_hosts"):
        Settings(webhook_hosts=hosts)


def test_more_hosts_than_the_environment_of_a_function_can_carry_are_refused():
    hosts = ",".join(f"hooks-{n:02}.example.com" for n in range(47))
    assert len(hosts) < 1000
    assert Settings(webhook_hosts=hosts).webhook_hosts == hosts
    with pytest.raises(BadSetting, match=r"1,000 characters"):
        Settings(webhook_hosts=f"{hosts},{hosts}")


@pytest.mark.parametrize("hosts", ["", "a.example", "a.example,*.b.example:8443 , localhost:*"])
def test_hosts_are_accepted(hosts):
    assert Settings(webhook_hosts=hosts).webhook_hosts == hosts
