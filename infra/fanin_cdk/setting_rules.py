"""Which values each setting takes; ``settings.py`` checks them."""

from typing import Final

from fanin.domain.targets import HOST_RULE

RETENTION: Final = {
    1: "ONE_DAY",
    3: "THREE_DAYS",
    5: "FIVE_DAYS",
    7: "ONE_WEEK",
    14: "TWO_WEEKS",
    30: "ONE_MONTH",
    60: "TWO_MONTHS",
    90: "THREE_MONTHS",
    120: "FOUR_MONTHS",
    150: "FIVE_MONTHS",
    180: "SIX_MONTHS",
    365: "ONE_YEAR",
    400: "THIRTEEN_MONTHS",
    545: "EIGHTEEN_MONTHS",
    731: "TWO_YEARS",
    1096: "THREE_YEARS",
    1827: "FIVE_YEARS",
    3653: "TEN_YEARS",
}
"""The retention periods that CloudWatch Logs offers: days → name in the CDK."""
CHOICES: Final[dict[str, tuple[str | int, ...]]] = {
    "auth": ("iam", "jwt", "none"),
    "log_retention_days": tuple(RETENTION),
    "log_level": ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    "tracing": ("none", "xray"),
    "removal": ("retain", "destroy"),
    "unrouted": ("ignore", "count", "keep"),
    "architecture": ("arm64", "x86_64"),
    "pipeline_network": ("none", "endpoints", "nat"),
}
RANGES: Final[dict[str, tuple[int, int]]] = {
    "open_idle_ttl": (60, 365 * 86_400),
    "closed_idle_ttl": (60, 365 * 86_400),
    "lifetime": (60, 365 * 86_400),
    "stall_after": (0, 365 * 86_400),
    "reaper_rate_minutes": (1, 1440),
    "registrar_rate_minutes": (1, 1440),
    "log_sample": (0, 100),
    "ack_batch_size": (1, 10_000),
    "ack_batching_window_seconds": (0, 300),
    "api_throttle_rate": (1, 100_000),
    "api_throttle_burst": (1, 100_000),
    "api_costly_rate": (1, 100_000),
    "api_costly_burst": (1, 100_000),
    "api_reserved_concurrency": (0, 100_000),
    "ack_reserved_concurrency": (0, 100_000),
    "ack_max_concurrency": (0, 1_000),
    "worker_max_concurrency": (0, 1_000),
    "words_warm_writes": (0, 10_000_000),
    "words_warm_reads": (0, 10_000_000),
    "table_max_writes": (0, 10_000_000),
    "table_max_reads": (0, 10_000_000),
    "pipeline_max_vcpu": (8, 4_000),
    "pipeline_disk_gb": (20, 200),
    "pipeline_audit_hours": (0, 720),
}
"""The smallest and the largest value.

Durations have the same bounds as in the API; those of batching are the bounds of SQS event sources.
"""
_MOST_SUBNETS: Final = 16
_MOST_GROUPS: Final = 5
"""What EMR Serverless takes for one application."""
_ORIGIN: Final = r"https?://[a-z0-9.-]+(:[0-9]{1,5})?"


def _ids(kind: str, most: int) -> tuple[str, str]:
    """The pattern of a list of ids of EC2, and what an error says about it."""
    one = rf"{kind}-[0-9a-f]+"
    pattern = rf"({one}(\s*,\s*{one}){{0,{most - 1}}})?"
    return pattern, f"at most {most} ids such as {kind}-0123456789abcdef0, separated by commas"


PATTERNS: Final[dict[str, tuple[str, str]]] = {
    "prefix": (r"[A-Za-z][A-Za-z0-9-]{0,39}", "a letter, then at most 39 letters, digits and hyphens"),
    "alarm_topic_arn": (r"(arn:[^:]+:sns:[^:]+:[^:]+:[^:]+)?", "the ARN of an SNS topic"),
    "kms_key_arn": (
        r"(arn:[^:]+:kms:[^:]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}))?",
        "the ARN of a KMS key, arn:aws:kms:<region>:<account>:key/<id>, and not that of an alias",
    ),
    "jwt_issuer": (r"(https://\S+)?", "an https URL"),
    # What RFC 6749 (section 3.3) allows in a scope; it stands in an environment variable.
    "jwt_scope_prefix": (
        r"[!#-\[\]-~]{0,200}",
        "text that begins a scope, such as fanin/, of at most 200 characters; empty for no scopes",
    ),
    "webhook_hosts": (
        # All environment variables of a function together have 4 KB.
        rf"(?=.{{0,1000}}\Z)({HOST_RULE}(\s*,\s*{HOST_RULE})*)?",
        "hosts such as hooks.example.com or *.example.org:8443, by commas, of 1,000 characters in all",
    ),
    "cors_origins": (
        rf"(?=.{{0,1000}}\Z)(\*|{_ORIGIN}(\s*,\s*{_ORIGIN})*)?",
        "origins such as https://shop.example.com, by commas, of 1,000 characters in all, or * for any",
    ),
    "console_origins": (
        rf"(?=.{{0,500}}\Z)({_ORIGIN}(\s*,\s*{_ORIGIN})*)?",
        "origins such as https://fanin.example.com or http://localhost:8080, by commas, of 500 characters",
    ),
    # Releases before 7.1 have no Python 3.11.
    "pipeline_release": (
        r"emr-7\.[1-9][0-9]*\.[0-9]+|emr-spark-[0-9]+(\.[0-9]+)*",
        "a release label of EMR, from emr-7.1.0 on or such as emr-spark-8.1.0",
    ),
    "pipeline_inputs": (
        r"(s3://[a-z0-9.-]+(/[^\s,*?]+)?/?(,(?=s)|$))*",
        "places in S3 such as s3://lake/orders/, separated by commas",
    ),
    "pipeline_subnets": _ids("subnet", _MOST_SUBNETS),
    "pipeline_security_groups": _ids("sg", _MOST_GROUPS),
}
"""A regular expression for the whole text, and what an error says about it."""
REQUIRED_WITH_JWT: Final = ("jwt_issuer", "jwt_audience")
ONLY_WITH_CONSOLE: Final = ("console_write", "console_origins")
AT_LEAST: Final = {
    "stall_after": 10,
    "ack_max_concurrency": 2,
    "worker_max_concurrency": 2,
    "words_warm_writes": 4_000,
    "words_warm_reads": 12_000,
}
"""The smallest value that AWS accepts; 0 leaves the value to AWS."""
TOGETHER = ("webhook_hosts", "console_origins", "jwt_scope_prefix")
"""Settings that stand in variables of one function, the console's."""
MOST_TOGETHER = 1_200
"""Characters of them: Lambda takes 4 KB of variables, and names of tables and queues take most of it."""
WARM_WITHIN: Final = {"words_warm_writes": "table_max_writes", "words_warm_reads": "table_max_reads"}
"""A throughput for which the words table is prepared → the limit beyond which the table throttles."""
MOST_CONCURRENT: Final = 1000
"""How many batches of messages an event source mapping hands over at once by default."""
LARGEST_WITHOUT_WINDOW: Final = 10
"""Messages of a batch; for larger batches Lambda requires a batching window."""
