"""The settings of a deployment: read from the CDK context, and checked before anything is built.

docs/reference/settings.md documents every setting.
"""

import re
from dataclasses import dataclass, fields
from typing import Any, Self

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Node

from fanin import names
from fanin_cdk.setting_rules import (
    AT_LEAST,
    CHOICES,
    LARGEST_WITHOUT_WINDOW,
    MOST_CONCURRENT,
    MOST_TOGETHER,
    ONLY_WITH_CONSOLE,
    PATTERNS,
    RANGES,
    REQUIRED_WITH_JWT,
    RETENTION,
    TOGETHER,
    WARM_WITHIN,
)


class BadSetting(ValueError):
    """A setting has an invalid value; the message gives its name, its value, and the valid values."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one deployment of fanin differs from another.

    Attributes:
        prefix: name of the stack, of the event bus, and of the ``service`` in logs and metrics.
        auth: authorization of the API: ``iam`` (SigV4), ``jwt``, or ``none``.
        jwt_issuer: issuer URL of the tokens; required with ``jwt``, otherwise unused.
        jwt_audience: audiences of the tokens, separated by commas; required with ``jwt``, otherwise unused.
        jwt_scope_prefix: what the scopes of tokens begin with, followed by the name of a group; empty lets
            every token call all routes.
        open_idle_ttl: seconds without activity after which an open batch is orphaned.
        closed_idle_ttl: seconds without activity after which a closed batch is orphaned.
        lifetime: default lifetime of a batch in seconds.
        stall_after: seconds without activity after which a batch is told as stalled; 0 for never.
        reaper_rate_minutes: minutes between two runs of the reaper.
        registrar_rate_minutes: minutes between two runs of the registrar.
        unrouted: what happens to events on the bus that match no route: ``ignore``, ``count`` or ``keep``.
        log_retention_days: days for which logs are kept.
        log_level: log level of the functions.
        log_sample: percentage of invocations that log a line although nothing went wrong.
        access_log: whether the API logs every request, with its caller.
        tracing: traces of the functions: ``none``, or ``xray`` for active tracing by Lambda.
        alarms: whether there are alarms.
        dashboard: whether there is a dashboard.
        removal: what happens to tables and logs when the stack is deleted: ``retain`` or ``destroy``.
        architecture: processor of the functions: ``arm64`` or ``x86_64``.
        ack_batch_size: most messages of the ack queue in one invocation.
        ack_batching_window_seconds: seconds that Lambda may wait for a full batch of acknowledgements.
        api_throttle_rate: requests per second that the API accepts.
        api_throttle_burst: concurrent requests that the API accepts.
        api_costly_rate: requests per second to each route that reads much; at most ``api_throttle_rate``.
        api_costly_burst: concurrent requests to each of them; at most ``api_throttle_burst``.
        cors_origins: pages of which sites may call the API, separated by commas; ``*`` for any.
        api_reserved_concurrency: concurrency kept for the API's function, and its limit; 0 for none.
        ack_reserved_concurrency: the same for the function of the ack queue.
        ack_max_concurrency: most invocations at a time for the ack queue; 0 for no limit.
        worker_max_concurrency: the same for each other queue of the service; 0 for no limit but that of
            targets, which is 100.
        words_warm_writes: writes per second that the words table takes at once; 0 leaves it to DynamoDB.
        words_warm_reads: the same for reads.
        table_max_writes: most write units per second of each table; 0 for no limit.
        table_max_reads: the same for read units.
        kms_key_arn: KMS key that encrypts everything at rest; empty for keys that AWS manages.
        alarm_topic_arn: SNS topic that alarms notify; empty for none.
        webhook_hosts: hosts that webhooks may call, separated by commas; empty allows none.
        console: whether the API serves the console, below ``/console``.
        console_write: whether that console has buttons that change something.
        console_origins: where browsers reach that console, if a proxy in front has another name than the API.
        pipeline: whether to deploy the stack of the Spark jobs, ``<prefix>-pipeline``.
        pipeline_release: EMR release that runs the jobs.
        pipeline_max_vcpu: most vCPUs that all jobs together use at a time.
        pipeline_disk_gb: disk of each executor, in GB.
        pipeline_inputs: places in S3 that jobs may read, separated by commas.
        pipeline_network: a VPC made for the jobs: ``none``, one with ``endpoints``, or one with ``nat``.
        pipeline_subnets: ids of private subnets in which jobs run, separated by commas.
        pipeline_security_groups: ids of the security groups of the jobs there, separated by commas.
        pipeline_audit_hours: hours between two audits; 0 for none.
        local: build for this machine, to deploy to an emulator.
    """

    prefix: str = "fanin"
    auth: str = "iam"
    jwt_issuer: str = ""
    jwt_audience: str = ""
    jwt_scope_prefix: str = names.SCOPE_PREFIX
    open_idle_ttl: int = 2 * 3600
    closed_idle_ttl: int = 7 * 86_400
    lifetime: int = 30 * 86_400
    stall_after: int = 1_800
    reaper_rate_minutes: int = 5
    registrar_rate_minutes: int = 5
    unrouted: str = "ignore"
    log_retention_days: int = 30
    log_level: str = "INFO"
    log_sample: int = 0
    access_log: bool = True
    tracing: str = "none"
    alarms: bool = True
    dashboard: bool = True
    removal: str = "retain"
    architecture: str = "arm64"
    ack_batch_size: int = 1000
    ack_batching_window_seconds: int = 5
    api_throttle_rate: int = 500
    api_throttle_burst: int = 1000
    api_costly_rate: int = 50
    api_costly_burst: int = 100
    cors_origins: str = ""
    api_reserved_concurrency: int = 0
    ack_reserved_concurrency: int = 0
    ack_max_concurrency: int = 0
    worker_max_concurrency: int = 0
    words_warm_writes: int = 0
    words_warm_reads: int = 0
    table_max_writes: int = 0
    table_max_reads: int = 0
    kms_key_arn: str = ""
    alarm_topic_arn: str = ""
    webhook_hosts: str = ""
    console: bool = False
    console_write: bool = False
    console_origins: str = ""
    pipeline: bool = False
    pipeline_release: str = "emr-spark-8.1.0"
    pipeline_max_vcpu: int = 64
    pipeline_disk_gb: int = 20
    pipeline_inputs: str = ""
    pipeline_network: str = "none"
    pipeline_subnets: str = ""
    pipeline_security_groups: str = ""
    pipeline_audit_hours: int = 24
    local: bool = False

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            BadSetting: a value is invalid, or conflicts with another setting.
        """
        for name, value in self._values().items():
            if name in CHOICES and value not in CHOICES[name]:
                raise _bad(name, value, f"one of {', '.join(map(str, CHOICES[name]))}")
            if name in RANGES and not RANGES[name][0] <= value <= RANGES[name][1]:
                raise _bad(name, value, "from {} to {}".format(*RANGES[name]))
            if name in AT_LEAST and 0 < value < AT_LEAST[name]:
                raise _bad(name, value, f"0, or from {AT_LEAST[name]} to {RANGES[name][1]}")
            if name in PATTERNS and not re.fullmatch(PATTERNS[name][0], value):
                raise _bad(name, value, PATTERNS[name][1])
            if name in WARM_WITHIN and 0 < (most := getattr(self, WARM_WITHIN[name])) < value:
                # It would be paid for, and never be used.
                raise _bad(name, value, f"at most {WARM_WITHIN[name]}, which is {most}; raise that as well")
            if name in REQUIRED_WITH_JWT and self.auth == "jwt" and not value:
                raise _bad(name, value, "set when auth is jwt")
        self._check_together()

    def _check_together(self) -> None:
        for name in ONLY_WITH_CONSOLE:
            if (value := getattr(self, name)) and not self.console:
                raise _bad(name, value, "set only when console is true")
        if self.console and (size := sum(len(getattr(self, name)) for name in TOGETHER)) > MOST_TOGETHER:
            longest = max(TOGETHER, key=lambda name: len(getattr(self, name)))
            few = f"shorter: {', '.join(TOGETHER)} have {size} characters; {MOST_TOGETHER} together fit"
            raise _bad(longest, getattr(self, longest), few)
        if self.ack_batch_size > LARGEST_WITHOUT_WINDOW and not self.ack_batching_window_seconds:
            size = self.ack_batch_size
            raise _bad("ack_batching_window_seconds", 0, f"at least 1 when ack_batch_size is {size}")
        if 0 < self.ack_reserved_concurrency < (self.ack_max_concurrency or MOST_CONCURRENT):
            # Lambda would receive messages that it cannot hand over, and that uses up their tries.
            least = f"0, or at least ack_max_concurrency, which is {self.ack_max_concurrency or 'not set'}"
            raise _bad("ack_reserved_concurrency", self.ack_reserved_concurrency, least)
        self._check_network()

    def _check_network(self) -> None:
        if self.pipeline_network != "none" and self.pipeline_subnets:
            raise _bad("pipeline_network", self.pipeline_network, "none when pipeline_subnets names subnets")
        if bool(self.pipeline_subnets) != bool(self.pipeline_security_groups):
            missing = "pipeline_security_groups" if self.pipeline_subnets else "pipeline_subnets"
            other = "pipeline_subnets" if self.pipeline_subnets else "pipeline_security_groups"
            raise _bad(missing, "", f"set, of the same VPC, when {other} is")

    def _values(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables with the settings that functions and library read; durations in seconds."""
        return {
            names.ENV_OPEN_IDLE_TTL: str(self.open_idle_ttl),
            names.ENV_CLOSED_IDLE_TTL: str(self.closed_idle_ttl),
            names.ENV_LIFETIME: str(self.lifetime),
            names.ENV_STALL_AFTER: str(self.stall_after),
            **({names.ENV_LOG_SAMPLE: str(self.log_sample)} if self.log_sample else {}),
            **({names.ENV_KMS_KEY_ARN: self.kms_key_arn} if self.kms_key_arn else {}),
            # Without blanks: jobs get it in a line that blanks divide.
            **({names.ENV_WEBHOOK_HOSTS: ",".join(hosts)} if (hosts := _listed(self.webhook_hosts)) else {}),
        }

    @property
    def removal_policy(self) -> RemovalPolicy:
        return RemovalPolicy[self.removal.upper()]

    @property
    def log_retention(self) -> logs.RetentionDays:
        return logs.RetentionDays[RETENTION[self.log_retention_days]]

    @property
    def jwt_audiences(self) -> list[str]:
        return _listed(self.jwt_audience)

    @property
    def pipeline_input_places(self) -> list[str]:
        """The inputs as ``<bucket>/<prefix>``, or as ``<bucket>`` for a whole bucket."""
        return [place.removeprefix("s3://") for place in _listed(self.pipeline_inputs)]

    @property
    def pipeline_subnet_ids(self) -> list[str]:
        return _listed(self.pipeline_subnets)

    @property
    def pipeline_security_group_ids(self) -> list[str]:
        return _listed(self.pipeline_security_groups)

    @property
    def cors_origin_list(self) -> list[str]:
        return _listed(self.cors_origins)

    @property
    def console_origin_list(self) -> list[str]:
        return _listed(self.console_origins)

    @classmethod
    def from_context(cls, node: Node) -> Self:
        """Read the settings from the context of a construct; those that are missing get their defaults.

        Values from the command line (``-c lifetime=3600``) are text, and are parsed.

        Raises:
            BadSetting: a value cannot be parsed, or is invalid.
        """
        given = {field.name: node.try_get_context(field.name) for field in fields(cls)}
        defaults = cls()
        return cls(
            **{
                name: _read(name, value, type(getattr(defaults, name)))
                for name, value in given.items()
                if value is not None
            }
        )


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _read(name: str, value: object, kind: type) -> Any:
    if kind is bool:
        if str(value).lower() not in ("true", "false"):
            raise _bad(name, value, "true or false")
        return str(value).lower() == "true"
    if kind is int:
        # JSON numbers arrive as floats from the CDK.
        if not re.fullmatch(r"[0-9]+(\.0)?", str(value)):
            raise _bad(name, value, "a whole number")
        return int(float(str(value)))
    return str(value)


def _bad(name: str, value: object, expected: str) -> BadSetting:
    return BadSetting(f"setting {name} is {value!r}; it must be {expected}")
