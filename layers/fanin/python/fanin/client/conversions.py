"""Converts callers' durations, points in time and enumeration values to what the services take."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from math import inf
from typing import Any, Final, TypeAlias, TypedDict, TypeVar

from fanin.domain.batch import ChildFailures, Mode, OnDeadline, OnFailure, OpenBatch
from fanin.domain.failures import Keep, Tolerance
from fanin.domain.limits import flag, pairs, shown
from fanin.domain.redrives import OrdinalRange, Selection
from fanin.domain.targets import Target, TargetType, When
from fanin.domain.totals import check_names
from fanin.errors import InvalidRequest

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

Duration: TypeAlias = timedelta | int
"""A timedelta, or whole seconds."""

Moment: TypeAlias = datetime | timedelta | int
"""A point in time: a datetime with a time zone, a timedelta from now, or milliseconds since the epoch."""


def seconds(duration: Duration | None) -> int | None:
    """A duration in whole seconds; fractions are cut off, and None stays None.

    >>> seconds(timedelta(minutes=2)), seconds(90), seconds(None)
    (120, 90, None)

    Raises:
        InvalidRequest: it is neither, or a part of a second, which would be cut off to nothing.
    """
    if isinstance(duration, timedelta) and timedelta(0) < duration < timedelta(seconds=1):
        raise InvalidRequest(f"{duration} is less than a second; give whole seconds")
    if isinstance(duration, timedelta):
        return int(duration.total_seconds())
    if duration is not None and type(duration) is not int:
        raise InvalidRequest(f"a duration must be a timedelta or whole seconds, not {shown(duration)}")
    return duration


def patience(timeout: Duration | float | None) -> float:
    """How long to wait at most, in seconds; None waits for ever.

    Raises:
        InvalidRequest: it is neither a timedelta nor a number, or not a number to wait for.
    """
    if timeout is None:
        return inf
    waits = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if isinstance(waits, bool) or not isinstance(waits, int | float) or not waits >= 0:
        raise InvalidRequest(f"timeout must be a timedelta or seconds, from 0, or None, not {shown(timeout)}")
    return waits


def milliseconds(moment: Moment, now: int) -> int:
    """A point in time in milliseconds since the epoch.

    Args:
        moment: a datetime, a timedelta from now, or milliseconds since the epoch.
        now: the time from which a timedelta counts, in milliseconds since the epoch.

    Raises:
        InvalidRequest: it is none of these, or a datetime without a time zone, since it could mean any of 38
            points in time.
    """
    if isinstance(moment, timedelta):
        return now + int(moment.total_seconds() * 1000)
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise InvalidRequest(f"{moment} has no time zone; use datetime.now(UTC) + …, or a timedelta")
        return int(moment.timestamp() * 1000)
    if type(moment) is not int:
        raise InvalidRequest(
            "a point in time must be a datetime, a timedelta from now, or whole milliseconds since the epoch,"
            f" not {shown(moment)}"
        )
    return moment


_RANGES: Final = "[(0, 10)], ordinals from 0 to 9"


def several(
    what: str, values: Iterable[T], kind: type[T] | tuple[type[T], ...], example: str
) -> tuple[T, ...]:
    """The values of an argument that takes several.

    Args:
        what: name of the argument.
        values: what the caller gave.
        kind: what each of them must be.
        example: how to write it, for the message.

    Raises:
        InvalidRequest: it is one value instead of several, or one of them is of another type.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidRequest(f"{what} must be several, such as {example}, not {type(values).__name__}")
    found = tuple(values)
    for value in found:
        if not isinstance(value, kind):
            raise InvalidRequest(f"{what} must be several, such as {example}, not of {type(value).__name__}")
    return found


def member(enumeration: type[E], value: E | str) -> E:
    """The member of an enumeration that has a value.

    Raises:
        InvalidRequest: no member has it; the message lists those that exist.
    """
    try:
        return enumeration(value)
    except ValueError:
        known = ", ".join(enumeration)
        raise InvalidRequest(f"{value!r} is not a {enumeration.__name__}: name one of {known}") from None


def selection(
    errors: str | Iterable[str] = (), ranges: Iterable[OrdinalRange | tuple[int, int]] = ()
) -> Selection:
    """Which failures are meant: by error, of which one may be given as it is, and by ordinals.

    >>> selection("disk full", [(0, 10)])
    Selection(errors=('disk full',), ranges=(OrdinalRange(start=0, stop=10),))

    Raises:
        InvalidRequest: the ranges are not pairs of ordinals, or the errors are not text.
    """
    errors = (errors,) if isinstance(errors, str) else several("errors", errors, str, '["disk full"]')
    return Selection(errors, tuple(map(_range, several("ranges", ranges, object, _RANGES))))


def _range(one: Any) -> OrdinalRange:
    match one:
        case OrdinalRange():
            return one
        case [start, stop]:
            return OrdinalRange(start, stop)
    raise InvalidRequest(f"ranges must be several, such as {_RANGES}, not of {type(one).__name__}")


def targets(on_end: Iterable[Target | Mapping[str, Any]]) -> tuple[Target, ...]:
    """Targets, of which some are given as the objects that the API takes.

    >>> targets([{"type": "sqs", "queue_url": "https://sqs/1/next"}])[0].when.value
    'any'

    Raises:
        InvalidRequest: one is neither, or has a field that targets do not have.
    """
    given = several("on_end", on_end, (Target, Mapping), '[{"type": "sqs", "queue_url": url}]')
    return tuple(
        replace(one, type=member(TargetType, one.type), when=member(When, one.when))
        for one in map(_target, given)
    )


def _target(given: Target | Mapping[str, Any]) -> Target:
    if isinstance(given, Target):
        return given
    known = {field.name for field in fields(Target)}
    if unknown := sorted(map(str, set(given) - known)):
        raise InvalidRequest(f"a target has no {unknown[0]!r}; it may have {', '.join(sorted(known))}")
    if "type" not in given:
        raise InvalidRequest(f"a target needs a type: {', '.join(TargetType)}")
    return Target(**given)


class BatchOptions(TypedDict, total=False):
    """What a batch is opened with.

    Attributes:
        user_key: your own name for the batch, returned with its events.
        mode: ``exact``, or ``estimated``: one counter, which counts a repeated acknowledgement twice.
        idle_ttl: time without activity until the batch is orphaned; a timedelta, or seconds.
        lifetime: time until a live batch is orphaned; a timedelta, or seconds; 1 minute to 365 days.
        deadline: when ``on_deadline`` happens: a datetime, a timedelta from now, or ms since the epoch.
        on_deadline: ``time_out``, or ``complete``, which lists what is missing.
        limit: most items that may be pending at a time.
        parent_item: item of another batch. It is marked done when this batch completes without failures,
            or with no more than it tolerates; else failed. An item has one such batch at a time. In a
            handler that names the item of its message here, the consumer leaves the item to this batch;
            when the message comes again, so does this batch.
        retry_of: id of the batch whose failed items this batch retries; its events show it.
        stall_after: time without activity until ``Batch Stalled`` tells that nothing moves, with the most
            likely reason; a timedelta, or seconds, 10 seconds to 365 days; 0 for never.
        metadata: small map of strings, returned with events.
        keep: ``message`` keeps the messages of failed items with the batch, the default; ``reason`` keeps
            their reasons alone, whoever fails them.
        on_failure: ``done``: an item that fails is done; or ``hold``: it stays pending until it is
            acknowledged, redriven and done, or released.
        child_failures: ``fail``: an item fails if a batch nested in it has failures; or ``ignore``.
        tolerated_failures: the failures beyond which the batch is cancelled with ``cause="failures"``:
            a number, or a ``Tolerance`` with a share of the items.
        on_end: who is called back when the batch ends, up to five: each a ``Target``, or an object such
            as ``{"type": "sqs", "when": "complete", "queue_url": url}``.
        totals: names of up to four whole numbers that are summed up over the items that are done, such as
            ``["rows", "cents"]``; see ``ack``.
        results: whether the results of items are kept; see ``ack``.
        max_items: most items that it takes in all. An addition beyond that raises ``MaxItemsReached``,
            which fails an item whose handler lets it pass; so a batch that grows from inside ends.
        milestones: percents of its items, from 1 to 100 and up to ten, such as ``[50, 90]``. ``Batch
            Progress`` tells of each once: of a closed batch when so much is done, and of the others
            right before the end.
    """

    user_key: str
    mode: Mode | str
    idle_ttl: Duration | None
    lifetime: Duration | None
    deadline: Moment | None
    on_deadline: OnDeadline | str
    limit: int | None
    parent_item: str | None
    retry_of: int | None
    stall_after: Duration | None
    metadata: Mapping[str, str] | None
    keep: Keep | str | None
    on_failure: OnFailure | str
    child_failures: ChildFailures | str
    tolerated_failures: Tolerance | int | None
    on_end: Iterable[Target | Mapping[str, Any]]
    totals: Iterable[str]
    results: bool
    max_items: int | None
    milestones: Iterable[int]


def batch_request(now: int, **options: Any) -> OpenBatch:
    """The request to open a batch, from options as people give them.

    Args:
        now: the time from which a timedelta counts, in milliseconds since the epoch.
        options: those of ``BatchOptions``; what is left out is as ``OpenBatch`` has it.

    Raises:
        InvalidRequest: a batch has no such option, or it cannot have such a value.
    """
    known = [field.name for field in fields(OpenBatch)]
    if unknown := sorted(options.keys() - known):
        raise InvalidRequest(f"a batch has no option {unknown[0]!r}; it may have {', '.join(known)}")
    if options.get("deadline") is not None:
        options["deadline"] = milliseconds(options["deadline"], now)
    given = options.items()
    return OpenBatch(**{name: _OPTIONS[name](value) if name in _OPTIONS else value for name, value in given})


def tolerance(given: Tolerance | int | None) -> Tolerance | None:
    """A tolerance of failures, where a number stands for their count."""
    if given is None or isinstance(given, Tolerance):
        return given
    if isinstance(given, int):
        return Tolerance(count=given)
    raise InvalidRequest(
        f"tolerated_failures must be a number of failures or a Tolerance, such as Tolerance(percent=5), not"
        f" {shown(given)}"
    )


def whole_numbers(name: str, given: Iterable[int]) -> tuple[int, ...]:
    """The numbers as a tuple; the service checks them."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidRequest(f"{name} must be a list of whole numbers, such as [50, 90], not {shown(given)}")
    return tuple(given)


def _metadata(given: Mapping[str, str] | None) -> dict[str, str]:
    pairs("metadata", given or {})
    return dict(given or {})


_OPTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "mode": partial(member, Mode),
    "idle_ttl": seconds,
    "lifetime": seconds,
    "on_deadline": partial(member, OnDeadline),
    "stall_after": seconds,
    "metadata": _metadata,
    "keep": lambda keep: None if keep is None else member(Keep, keep),
    "on_failure": partial(member, OnFailure),
    "child_failures": partial(member, ChildFailures),
    "tolerated_failures": tolerance,
    "on_end": targets,
    "totals": check_names,
    "results": partial(flag, "results"),
    "milestones": partial(whole_numbers, "milestones"),
}
"""Option of a batch → what reads its value."""
