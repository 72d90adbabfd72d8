"""Why a batch is not finished: findings, what is known of missing items, and what is noted for that."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fanin.domain.batch import Batch
from fanin.domain.reports import MissingRange


class Severity(StrEnum):
    """How much a finding explains.

    Attributes:
        ERROR: the batch will not finish unless somebody acts.
        WARNING: it may not finish, or takes longer than it should.
        INFO: nothing is wrong.
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """What a finding is about, in the order in which findings of one severity are listed."""

    DONE_UNSETTLED = "done_unsettled"
    DEAD_LETTERS_WAITING = "dead_letters_waiting"
    WAITING = "waiting"
    TARGET_FAILS = "target_fails"
    EXPIRED = "expired"
    RETRYING = "retrying"
    THROTTLED = "throttled"
    NEVER_SENT = "never_sent"
    VANISHED = "vanished"
    OPEN_NOT_CLOSED = "open_not_closed"
    DRAINING = "draining"
    HELD = "held"
    CHILD_RUNNING = "child_running"
    IN_FLIGHT = "in_flight"
    SLOW = "slow"
    UNEXPLAINED = "unexplained"
    DEADLINE_NEAR = "deadline_near"
    NOT_SEEN = "not_seen"
    ENDED = "ended"


class Known(StrEnum):
    """What is known of missing items."""

    NEVER_SENT = "never_sent"
    WAITING = "waiting"
    IN_FLIGHT = "in_flight"
    RETRYING = "retrying"
    HELD = "held"
    CHILD_RUNNING = "child_running"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why a batch is not finished.

    Attributes:
        code: what it is about.
        severity: how much it explains.
        title: the reason, in a few words.
        detail: what was seen, in a sentence or two; it says "probably" where figures are approximate.
        advice: what to do.
        evidence: the figures that it stands on, by name.
    """

    code: Code
    severity: Severity
    title: str
    detail: str
    advice: str
    evidence: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MissingKnown:
    """A range of missing items, and what is known of them.

    Attributes:
        range: the items.
        known: the state that they are probably in.
        detail: why, in a sentence.
    """

    range: MissingRange
    known: Known
    detail: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a batch is not finished.

    Attributes:
        batch: the row, with the failed items that were seen.
        done_min: at least so many items are done.
        done_max: at most so many are.
        findings: most likely first; at least one.
        missing: the first ranges of missing items.
        missing_more: whether there are others.
    """

    batch: Batch
    done_min: int
    done_max: int
    findings: tuple[Finding, ...]
    missing: tuple[MissingKnown, ...] = ()
    missing_more: bool = False


@dataclass(frozen=True, slots=True)
class SentItems:
    """Items whose messages a queue has accepted: ordinals start ≤ i < stop of a batch.

    Attributes:
        queue: URL.
        start: ordinal of the first.
        stop: one past the last.
    """

    queue: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Retry:
    """An attempt at an item that failed, after which its message comes again.

    Attributes:
        item: its id.
        attempt: how often the message was received, this attempt included.
        error: why it failed, for people; at most 1,024 characters.
        queue: name of the queue, URL or ARN; empty if it is not known.
    """

    item: str
    attempt: int
    error: str
    queue: str = ""


_RANKS = {severity: rank for rank, severity in enumerate(Severity)}
_PLACES = {code: place for place, code in enumerate(Code)}


def most_likely_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings by severity, and within one severity by how directly they explain that items are missing."""
    return tuple(sorted(findings, key=lambda one: (_RANKS[one.severity], _PLACES[one.code])))
