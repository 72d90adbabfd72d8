"""What queues say about missing items. Counts of SQS are approximate, so most of it is only probable."""

from collections.abc import Iterator

from fanin.app.diagnosis.gathering import LAG_MS, Facts
from fanin.app.ports.queues import Figures, QueueReport
from fanin.domain.diagnosis import Code, Finding, Severity
from fanin.domain.limits import counted
from fanin.names import TRACKED_TAG

_LAG = "SQS's counts are approximate, and may be a minute old."


def queue_findings(facts: Facts) -> list[Finding]:
    """Findings about the queues to which missing items were sent; held items are in none."""
    if facts.all_held:
        return []
    return [*(one for report in facts.queues for one in _of(facts, report)), *_unseen(facts)]


def _of(facts: Facts, report: QueueReport) -> Iterator[Finding]:
    if report.dead:
        yield _dead_letters(facts, report, report.dead)
    if not report.exists:
        yield _gone(facts, report)
    figures = report.figures
    if figures is None:
        return
    yield from _throttled(report, figures)
    if figures.visible and not figures.in_flight:
        yield from _waiting(facts, report, figures)
    if figures.in_flight:
        yield _in_flight(report, figures)
    if figures.delayed and not (figures.visible or figures.in_flight):
        yield _delayed(report, figures)
    # While items are marked, an empty queue proves nothing: marks and counts arrive in any order.
    if figures.empty and not (facts.moving or report.dead or facts.retrying or facts.children):
        yield from _empty(facts, report, figures)


def _dead_letters(facts: Facts, report: QueueReport, dead: int) -> Finding:
    """While the batch moves, they may be the dead letters of others that share the queue."""
    arn = report.figures.dead_letters if report.figures else ""
    name = arn.rpartition(":")[2] or "its dead-letter queue"
    return Finding(
        Code.DEAD_LETTERS_WAITING,
        Severity.WARNING if facts.moving else Severity.ERROR,
        f"{counted(dead, 'message waits', 'messages wait')} in {name}, the dead-letter queue of"
        f" {report.name}",
        "Probably some are of missing items: these stay missing while nothing fails them. SQS's count is"
        " approximate.",
        "Fix the cause, and let SQS move the messages back: `aws sqs start-message-move-task --source-arn"
        f" {arn or 'ARN'}`. `fanin redrive` does not see them, since their items have not failed. Where"
        " fanin's function for dead letters consumes that queue, as with a TrackedQueue, it fails them."
        f" {facts.lost(report.queue)}",
        {"queue": report.name, "dead_letter_queue": name, "messages": dead},
    )


def _gone(facts: Facts, report: QueueReport) -> Finding:
    return Finding(
        Code.VANISHED,
        Severity.WARNING if facts.moving else Severity.ERROR,
        "The queue is gone",
        f"Missing items were sent to {report.name}, and SQS says that there is no such queue.",
        f"Take another queue. {facts.lost()}",
        {"queue": report.name},
    )


def _throttled(report: QueueReport, figures: Figures) -> Iterator[Finding]:
    for trouble in report.troubles or ():
        if trouble.throttles:
            yield Finding(
                Code.THROTTLED,
                Severity.WARNING,
                "The consumer is throttled",
                f"Lambda refused {counted(trouble.throttles, 'invocation', 'invocations')} of"
                f" {trouble.function} in the last {trouble.minutes} minutes. Each counts as a receive of its"
                " messages.",
                "Raise the function's reserved concurrency or the account's limit, or set the event source"
                " mapping's maximum concurrency below it.",
                {"queue": report.name, "function": trouble.function, "throttles": trouble.throttles},
            )
        if trouble.errors and not figures.empty:
            yield Finding(
                Code.RETRYING,
                Severity.WARNING,
                "The consumer fails",
                f"{counted(trouble.errors, 'invocation', 'invocations')} of {trouble.function} failed in the"
                f" last {trouble.minutes} minutes. Their messages come again.",
                "Look into the log of the function.",
                {"queue": report.name, "function": trouble.function, "errors": trouble.errors},
            )


def _waiting(facts: Facts, report: QueueReport, figures: Figures) -> Iterator[Finding]:
    """Messages wait, and none is in flight: nobody seems to receive them."""
    waiting = counted(figures.visible, "message waits", "messages wait")
    seen = f"About {waiting} in {report.name}, and none is in flight."
    evidence: dict[str, str | int] = {"queue": report.name, "visible": figures.visible, "in_flight": 0}

    def found(severity: Severity, title: str, detail: str, advice: str, **more: str) -> Finding:
        return Finding(Code.WAITING, severity, title, f"{seen} {detail}", advice, {**evidence, **more})

    consumers = report.consumers
    if consumers is None:
        if not facts.moving:
            yield found(
                Severity.WARNING,
                "Probably nobody receives the messages",
                f"{_LAG} Its event source mappings could not be listed.",
                "Check that the consumers of the queue run, and that they may receive from it.",
            )
    elif any(consumer.enabled for consumer in consumers):
        names = ", ".join(consumer.function for consumer in consumers if consumer.enabled)
        if facts.quiet:
            yield found(
                Severity.WARNING,
                "Messages wait although a consumer is enabled",
                f"{_LAG} The event source mapping of {names} is enabled.",
                "Check the function's role, its concurrency, and the visibility timeout of the queue.",
                consumers=names,
            )
    elif consumers:
        states = ", ".join(f"{consumer.function} ({consumer.state})" for consumer in consumers)
        yield found(
            Severity.ERROR,
            "Nobody receives the messages: the event source mapping is not enabled",
            f"The queue's event source mappings: {states}.",
            "Enable the event source mapping: `aws lambda update-event-source-mapping --enabled --uuid"
            f" {consumers[0].mapping or 'UUID'}`.",
            consumers=states,
        )
    elif not facts.moving or not facts.recent:
        # A batch that moves may just be slow, so that its queue looks idle is worth saying and no more.
        still = Severity.WARNING if facts.recent else Severity.ERROR
        yield found(
            Severity.INFO if facts.moving else still,
            f"{'Perhaps' if facts.moving else 'Probably'} nobody receives the messages",
            f"{_LAG} No event source mapping reads from the queue.",
            "Connect a consumer to the queue. If processes elsewhere poll it, check that they run.",
        )


def _in_flight(report: QueueReport, figures: Figures) -> Finding:
    return Finding(
        Code.IN_FLIGHT,
        Severity.INFO,
        "Consumers work on messages",
        f"About {counted(figures.in_flight, 'message', 'messages')} of {report.name}"
        f" {'is' if figures.in_flight == 1 else 'are'} in flight, and"
        f" {counted(figures.visible, 'waits', 'wait')}.",
        "Wait. A message whose consumer has died comes again after its visibility timeout.",
        {"queue": report.name, "in_flight": figures.in_flight, "visible": figures.visible},
    )


def _delayed(report: QueueReport, figures: Figures) -> Finding:
    return Finding(
        Code.WAITING,
        Severity.INFO,
        "Messages are delayed",
        f"About {counted(figures.delayed, 'message', 'messages')} of {report.name} cannot be received yet.",
        "Wait. SQS delays a message by 15 minutes at most.",
        {"queue": report.name, "visible": 0, "in_flight": 0, "delayed": figures.delayed},
    )


def _empty(facts: Facts, report: QueueReport, figures: Figures) -> Iterator[Finding]:
    """Nothing is in the queue, but items that were sent there are missing."""
    rows = [row for row in facts.sent if row.queue == report.queue]
    missing = [row for row in rows if any(row in facts.covering(found) for found in facts.not_held)]
    if not missing:
        return
    first, last = min(row.first_at for row in missing), max(row.last_at for row in missing)
    evidence: dict[str, str | int] = {"queue": report.name, "visible": 0, "in_flight": 0}
    if first + figures.retention * 1000 <= facts.now:
        all_past = last + figures.retention * 1000 <= facts.now
        yield Finding(
            Code.EXPIRED,
            Severity.ERROR,
            "The messages have probably expired",
            f"{report.name} keeps messages for {figures.retention:,} seconds, and"
            f" {'all' if all_past else 'perhaps some'} of the missing items were sent longer ago. It seems"
            " empty.",
            f"{facts.lost(report.queue)} Raise the queue's retention period to the batch's lifetime.",
            {**evidence, "retention": figures.retention},
        )
        if all_past:
            return
    lately = f" {_LAG}" if last + LAG_MS > facts.now else ""
    yield Finding(
        Code.VANISHED,
        Severity.ERROR if facts.quiet else Severity.WARNING,
        "The messages are gone, but their items are not marked",
        f"{report.name} seems empty and nothing is in flight, so probably the messages were deleted without"
        f" an acknowledgement, or purged.{lately} Acknowledgements through the ack queue"
        " may be on their way.",
        f"Check that consumers acknowledge (`@tracker.sqs_handler` does). {facts.lost(report.queue)}",
        evidence,
    )


def _unseen(facts: Facts) -> Iterator[Finding]:
    for report in facts.queues:
        for what in report.unseen:
            yield Finding(
                Code.NOT_SEEN,
                Severity.INFO,
                "Something could not be looked at",
                f"Could not look at {what} of queue {report.name}.",
                f"To have it looked at, tag the queue `{TRACKED_TAG}` and let fanin's role read it.",
                {"queue": report.name, "unseen": what},
            )
