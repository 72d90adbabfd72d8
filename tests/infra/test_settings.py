"""Settings: documentation and code agree, and invalid values are refused."""

import json
import re
from dataclasses import asdict, fields
from pathlib import Path

import aws_cdk as cdk
import pytest

from fanin import names
from fanin_cdk import BadSetting, Settings

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+?) \| (.+?) \|$", re.MULTILINE)


class Scope:
    """Replaces a construct with a context."""

    def __init__(self, **context: object) -> None:
        self._context = context

    def try_get_context(self, key: str) -> object:
        return self._context.get(key)


def documented() -> dict[str, tuple[str, str]]:
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    return {name: (default, choices) for name, default, choices, _ in ROW.findall(page)}


def test_every_setting_is_documented_and_nothing_else():
    # Given the page and the code
    # Then they name the same settings
    assert list(documented()) == [field.name for field in fields(Settings)]


def test_the_documented_defaults_are_those_of_the_code():
    for name, default in asdict(Settings()).items():
        shown = documented()[name][0]
        expected = f"`{json.dumps(default)}`" if isinstance(default, bool) else f"`{default}`"
        expected = expected if default != "" else "none"
        assert shown == expected, name


def test_the_documented_choices_are_those_of_the_code():
    from fanin_cdk.setting_rules import CHOICES, RANGES

    for name, choices in CHOICES.items():
        assert documented()[name][1].replace("`", "") == ", ".join(map(str, choices)), name
    for name, (low, high) in RANGES.items():
        assert documented()[name][1] == f"{low} to {high}", name


def test_cdk_json_lists_every_setting_with_its_default():
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    assert context == asdict(Settings())


def test_a_context_without_settings_gives_the_defaults():
    assert Settings.from_context(Scope()) == Settings()


def test_text_from_the_command_line_is_read_as_what_it_stands_for():
    # Given settings as `-c name=value` passes them
    scope = Scope(lifetime="3600", local="true", prefix="shop", api_throttle_rate=20.0)
    settings = Settings.from_context(scope)
    assert settings == Settings(lifetime=3600, local=True, prefix="shop", api_throttle_rate=20)
    assert isinstance(settings.api_throttle_rate, int)


def test_an_app_gives_its_context():
    app = cdk.App(context={"reaper_rate_minutes": 9, "local": True})
    assert Settings.from_context(app.node) == Settings(reaper_rate_minutes=9, local=True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"auth": "basic"}, "auth is 'basic'; it must be one of iam, jwt, none"),
        ({"prefix": "1st"}, "prefix is '1st'; it must be a letter"),
        ({"prefix": "x" * 41}, "prefix"),
        ({"lifetime": 59}, "lifetime is 59; it must be from 60 to 31536000"),
        ({"lifetime": 365 * 86_400 + 1}, "lifetime"),
        ({"open_idle_ttl": 0}, "open_idle_ttl"),
        ({"closed_idle_ttl": -1}, "closed_idle_ttl"),
        ({"reaper_rate_minutes": 0}, "reaper_rate_minutes"),
        ({"log_retention_days": 31}, "log_retention_days is 31; it must be one of 1, 3, 5"),
        ({"log_level": "LOUD"}, "log_level"),
        ({"removal": "keep"}, "removal is 'keep'; it must be one of retain, destroy"),
        ({"architecture": "arm"}, "architecture"),
        ({"ack_batch_size": 10_001}, "ack_batch_size"),
        ({"ack_batching_window_seconds": 301}, "ack_batching_window_seconds"),
        ({"ack_batching_window_seconds": 0}, "at least 1 when ack_batch_size is 1000"),
        ({"api_throttle_rate": 0}, "api_throttle_rate"),
        ({"api_throttle_burst": 0}, "api_throttle_burst"),
        ({"alarm_topic_arn": "topic"}, "alarm_topic_arn is 'topic'; it must be the ARN of an SNS topic"),
        ({"auth": "jwt"}, "jwt_issuer is ''; it must be set when auth is jwt"),
        ({"auth": "jwt", "jwt_issuer": "https://id.example.com/"}, "jwt_audience"),
        ({"jwt_issuer": "http://id.example.com/"}, "jwt_issuer"),
        ({"pipeline_network": "vpc"}, "pipeline_network is 'vpc'; it must be one of none, endpoints, nat"),
        (
            {"pipeline_subnets": "vpc-1"},
            "pipeline_subnets is 'vpc-1'; it must be at most 16 ids such as subnet-",
        ),
        ({"pipeline_security_groups": ",".join(["sg-1"] * 6)}, "at most 5 ids such as sg-"),
        ({"pipeline_subnets": "subnet-1"}, "pipeline_security_groups is ''; it must be set, of the same VPC"),
        ({"pipeline_security_groups": "sg-1"}, "pipeline_subnets is ''; it must be set"),
        (
            {"pipeline_network": "nat", "pipeline_subnets": "subnet-1", "pipeline_security_groups": "sg-1"},
            "pipeline_network is 'nat'; it must be none when",
        ),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(given, says):
    with pytest.raises(BadSetting, match=re.escape(says)):
        Settings(**given)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"lifetime": "soon"}, "lifetime is 'soon'; it must be a whole number"),
        ({"lifetime": 1.5}, "lifetime is 1.5; it must be a whole number"),
        ({"lifetime": True}, "lifetime is True; it must be a whole number"),
        ({"local": "yes"}, "local is 'yes'; it must be true or false"),
    ],
)
def test_a_context_value_that_cannot_be_read_is_refused_by_name(given, says):
    with pytest.raises(BadSetting, match=re.escape(says)):
        Settings.from_context(Scope(**given))


def test_acks_one_by_one_need_no_window():
    assert Settings(ack_batch_size=10, ack_batching_window_seconds=0).ack_batching_window_seconds == 0


@pytest.mark.parametrize(
    ("name", "value"), [("ack_max_concurrency", 1), ("words_warm_writes", 3_999), ("words_warm_reads", 4_000)]
)
def test_a_limit_is_one_that_aws_takes_or_none(name, value):
    with pytest.raises(BadSetting, match=f"setting {name} is {value}; it must be 0, or from"):
        Settings(**{name: value})
    assert getattr(Settings(**{name: 0}), name) == 0


@pytest.mark.parametrize(
    "release", ["emr-6.15.0", "emr-7.0.0", "emr-7.1", "emr-8.0.0", "emr-spark-", "emr-spark-8.1.0 --conf", ""]
)
def test_a_release_that_has_no_python_for_the_jobs_is_refused(release):
    with pytest.raises(BadSetting, match=r"pipeline_release .* from emr-7\.1\.0 on"):
        Settings(pipeline_release=release)


@pytest.mark.parametrize("release", ["emr-7.1.0", "emr-7.14.0", "emr-spark-8.0.0", "emr-spark-8.1.0"])
def test_a_release_with_python_for_the_jobs_is_accepted(release):
    assert Settings(pipeline_release=release).pipeline_release == release


def test_a_pipeline_has_room_for_a_driver_and_an_executor():
    assert Settings(pipeline_max_vcpu=8)
    with pytest.raises(BadSetting, match="pipeline_max_vcpu is 7; it must be from 8 to 4000"):
        Settings(pipeline_max_vcpu=7)


def test_the_ack_queue_receives_no_more_than_its_function_takes():
    with pytest.raises(BadSetting, match="at least ack_max_concurrency, which is 50"):
        Settings(ack_reserved_concurrency=49, ack_max_concurrency=50)
    with pytest.raises(BadSetting, match="ack_reserved_concurrency"):
        Settings(ack_reserved_concurrency=5)
    assert Settings(ack_reserved_concurrency=50, ack_max_concurrency=50)
    assert Settings(ack_max_concurrency=50)


@pytest.mark.parametrize("kind", ["writes", "reads"])
def test_the_words_table_is_prepared_for_no_more_than_it_may_take(kind):
    # Given a limit of the tables
    limit = {f"table_max_{kind}": 20_000}
    # Then to prepare for more is refused, and the message names both settings
    says = f"setting words_warm_{kind} is 20001; it must be at most table_max_{kind}, which is 20000"
    with pytest.raises(BadSetting, match=says):
        Settings(**limit, **{f"words_warm_{kind}": 20_001})
    # And as much as the limit, or anything without one, is accepted
    assert Settings(**limit, **{f"words_warm_{kind}": 20_000})
    assert Settings(**{f"words_warm_{kind}": 20_001})


def test_what_stands_in_variables_of_the_console_fits_in_together():
    """All variables of a function have 4 KB; only the deployment would fail."""
    hosts, origins = f"{'h' * 60}.example.com", f"https://{'o' * 480}.com"
    many = ",".join([hosts] * 13)
    assert Settings(webhook_hosts=many, console=False).webhook_hosts == many
    with pytest.raises(BadSetting, match=r"webhook_hosts.*1200 together"):
        Settings(webhook_hosts=many, console=True, console_origins=origins)


OUTPUTS = {names.OUTPUT_API_URL, *names.OUTPUTS.values()}


def test_the_environment_is_what_the_library_reads(tracker):
    known = {value for name, value in vars(names).items() if name.startswith("ENV_")}
    # Some belong to functions, two to people and their programs;
    # and the API would take precedence over the tables.
    own = {names.ENV_RETRY_QUEUE_URL, names.ENV_UNROUTED_QUEUE_URL}
    webhooks = {names.ENV_WEBHOOK_HOSTS, names.ENV_WEBHOOK_SECRET_ARN, names.ENV_WEBHOOK_LOOPBACK}
    console = {names.ENV_CONSOLE_ORIGINS, names.ENV_CONSOLE_WRITE, names.ENV_JWT_SCOPE_PREFIX}
    key = {names.ENV_KMS_KEY_ARN}
    programs = {names.ENV_PROFILE, names.ENV_WORK_QUEUE_URL}
    others = {*own, *webhooks, *console, *key, *programs, names.ENV_API_URL, names.ENV_LOG_SAMPLE}
    assert set(tracker.environment) == known - others


def test_the_stack_tells_where_everything_is(fanin):
    assert set(fanin.template.to_json()["Outputs"]) == OUTPUTS
