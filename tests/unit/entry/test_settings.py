"""The environment: each value checked when it is asked for."""

import ast
from pathlib import Path

import pytest

import fanin
from fanin import names
from fanin.app.ports import Defaults
from fanin.entry.settings import Settings
from fanin.errors import NotConfigured

TEXTS = {
    "batches_table": names.ENV_BATCHES_TABLE,
    "words_table": names.ENV_WORDS_TABLE,
    "parts_table": names.ENV_PARTS_TABLE,
    "directory_table": names.ENV_DIRECTORY_TABLE,
    "bus": names.ENV_BUS,
    "schedule_group": names.ENV_SCHEDULE_GROUP,
    "schedule_role_arn": names.ENV_SCHEDULE_ROLE_ARN,
    "timer_arn": names.ENV_TIMER_ARN,
    "timer_dlq_arn": names.ENV_TIMER_DLQ_ARN,
    "retry_queue_url": names.ENV_RETRY_QUEUE_URL,
    "router_arn": names.ENV_ROUTER_ARN,
    "scatter_queue_url": names.ENV_SCATTER_QUEUE_URL,
    "redrive_queue_url": names.ENV_REDRIVE_QUEUE_URL,
    "claims_bucket": names.ENV_CLAIMS_BUCKET,
    "buffer_prefix": names.ENV_BUFFER_PREFIX,
}


@pytest.mark.parametrize(("setting", "variable"), TEXTS.items())
def test_a_setting_is_its_variable_and_a_missing_one_names_it(setting, variable):
    assert getattr(Settings({variable: "there"}), setting) == "there"
    for environment in ({}, {variable: ""}):
        with pytest.raises(NotConfigured, match=variable):
            getattr(Settings(environment), setting)


@pytest.mark.parametrize(
    ("setting", "variable"),
    [
        ("ack_queue_url", names.ENV_ACK_QUEUE_URL),
        ("unrouted_queue_url", names.ENV_UNROUTED_QUEUE_URL),
        ("buffer_dead_letters_arn", names.ENV_BUFFER_DEAD_LETTERS_ARN),
        ("kms_key_arn", names.ENV_KMS_KEY_ARN),
    ],
)
def test_a_setting_that_may_be_missing_is_none_then(setting, variable):
    assert getattr(Settings({variable: "there"}), setting) == "there"
    for environment in ({}, {variable: ""}):
        assert getattr(Settings(environment), setting) is None


@pytest.mark.parametrize(
    ("bus", "name", "prefix"),
    [
        ("arn:aws:events:eu-west-1:123456789012:event-bus/shop", "shop", "123456789012/eu-west-1/shop/"),
        ("shop", "shop", "shop/"),
    ],
)
def test_a_bus_is_named_alone_or_by_its_arn_which_tells_deployments_apart(bus, name, prefix):
    settings = Settings({names.ENV_BUS: bus})
    assert (settings.bus, settings.defaults.event_prefix) == (name, prefix)


def test_durations_have_defaults():
    assert Settings({}).defaults == Defaults(targets=False)
    assert Settings({names.ENV_LIFETIME: "3600", names.ENV_OPEN_IDLE_TTL: "60"}).defaults == Defaults(
        open_idle_ttl=60, lifetime=3600, targets=False
    )


def test_who_opens_batches_knows_whether_targets_are_told_and_which_hosts_are_allowed():
    told = Settings({names.ENV_TARGETS_QUEUE_URL: "https://q", names.ENV_WEBHOOK_HOSTS: "a.example"})
    assert told.defaults == Defaults(webhook_hosts="a.example")
    assert told.targets_queue_url == "https://q"
    assert not told.webhook_loopback
    assert Settings({names.ENV_WEBHOOK_LOOPBACK: "true"}).webhook_loopback
    with pytest.raises(NotConfigured, match=names.ENV_WEBHOOK_SECRET_ARN):
        _ = told.webhook_secret_arn


@pytest.mark.parametrize(
    ("environment", "region"),
    [
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "us-east-1"}, "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "eu-central-1"}, "eu-central-1"),
        ({}, ""),
    ],
)
def test_costs_are_estimated_for_the_region_of_the_process(environment, region):
    assert Settings(environment).defaults.region == region


def test_a_sample_of_the_log_is_a_percentage():
    assert Settings({}).log_sample == 0
    assert Settings({names.ENV_LOG_SAMPLE: "100"}).log_sample == 100
    for value in ("101", "-1", "5%", "٣"):
        with pytest.raises(NotConfigured, match=r"FANIN_LOG_SAMPLE must be from 0 to 100"):
            _ = Settings({names.ENV_LOG_SAMPLE: value}).log_sample


@pytest.mark.parametrize("value", ["0", "-5", "1.5", "2h", "٣"])
def test_a_duration_that_is_no_number_of_seconds_is_refused(value):
    with pytest.raises(NotConfigured, match=names.ENV_CLOSED_IDLE_TTL):
        _ = Settings({names.ENV_CLOSED_IDLE_TTL: value}).defaults


def test_nothing_else_in_the_functions_code_reads_the_environment():
    root = Path(fanin.__file__).parent
    readers = set()
    for room in ("domain", "app", "adapters", "entry"):
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv"):
                    readers.add(str(path.relative_to(root)))
    assert readers == {"entry/settings.py"}
