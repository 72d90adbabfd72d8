"""The tree of errors: what its docstring draws is what there is, and every code is stable and unique."""

import re
from collections import Counter

from fanin import errors
from fanin.errors import FaninError

CLASSES = [
    error for error in vars(errors).values() if isinstance(error, type) and issubclass(error, FaninError)
]
CODES = {
    "AccessDenied": "access-denied",
    "BatchClosed": "batch-closed",
    "BatchGone": "batch-gone",
    "BatchNotFound": "batch-not-found",
    "BufferFull": "buffer-full",
    "BufferNotFound": "buffer-not-found",
    "FailureNotFound": "failure-not-found",
    "ChannelRefused": "channel-refused",
    "CorrelationIdAlive": "correlation-id-alive",
    "EnvelopesRefused": "envelopes-refused",
    "ExportDamaged": "export-damaged",
    "FaninError": "error",
    "IdempotencyKeyReused": "idempotency-key-reused",
    "InvalidItemId": "invalid-item-id",
    "InvalidRequest": "invalid-request",
    "ItemHasChild": "item-has-child",
    "ItemDone": "item-done",
    "KeyNotFound": "key-not-found",
    "ItemFailed": "item-failed",
    "MaxItemsReached": "max-items-reached",
    "JobRunNotFound": "job-run-not-found",
    "LimitReached": "limit-reached",
    "LocalStackFailed": "local-stack-failed",
    "NotConfigured": "not-configured",
    "Unreachable": "unreachable",
    "NotRegistered": "not-registered",
    "PartlyMarked": "partly-marked",
    "OutcomeUnknown": "outcome-unknown",
    "RequestTooLarge": "request-too-large",
    "TooManyRejects": "too-many-rejects",
    "UnsupportedMediaType": "unsupported-media-type",
    "RouteNotFound": "route-not-found",
    "SendFailed": "send-failed",
    "TargetRefused": "target-refused",
    "ServiceUnavailable": "service-unavailable",
    "Throttled": "throttled",
}
"""Codes that clients, logs and alarms already know. One may be added, none may change."""
RETRYABLE = {"LimitReached", "BufferFull", "Throttled", "ServiceUnavailable"}


def drawn() -> dict[str, tuple[str, str]]:
    """The tree of the docstring: class → its parent, and what is said of it."""
    tree, parents = {}, {-1: ""}
    for line in (errors.__doc__ or "").splitlines():
        node = re.fullmatch(r"    ((?:│   |    )*)([├└]── )?([A-Z]\w+) *(.*)", line)
        if node is not None:
            indent, branch, name, meaning = node.groups()
            depth = len(indent) // 4 + bool(branch)
            tree[name] = (parents[depth - 1], meaning)
            parents[depth] = name
    return tree


def test_the_tree_that_is_drawn_is_the_tree_that_there_is():
    there_is = {error.__name__: error.__mro__[1].__name__ for error in CLASSES}
    assert {name: parent or "Exception" for name, (parent, _) in drawn().items()} == there_is


def test_the_tree_says_of_every_error_what_it_means():
    assert all(meaning for name, (_, meaning) in drawn().items() if name != "FaninError")


def test_codes_are_stable_and_unique():
    assert {error.__name__: error.code for error in CLASSES} == CODES
    assert Counter(CODES.values()).most_common(1)[0][1] == 1


def test_those_that_pass_are_retryable():
    assert {error.__name__ for error in CLASSES if error.retryable} == RETRYABLE


def test_an_error_says_its_message_and_when_to_come_back():
    error = errors.Throttled("slow down", retry_after=3)
    assert (str(error), error.retry_after) == ("slow down", 3)
    assert errors.Throttled("slow down").retry_after is None
    assert errors.ItemFailed("no such customer").retry_after is None


def test_messages_that_were_not_sent_are_named_with_their_reasons():
    reasons = {"1:g:0": "too long"}
    error = errors.SendFailed("one of two", items=reasons)
    reasons.clear()
    assert (error.items, error.retryable) == ({"1:g:0": "too long"}, False)
    assert (error.sent, error.unsent) == (0, [])


def test_envelopes_that_can_never_be_sent_are_named_with_their_reasons():
    reasons = {3: "too long"}
    error = errors.EnvelopesRefused("one of two", reasons=reasons)
    reasons.clear()
    assert (error.reasons, error.retryable) == ({3: "too long"}, False)


def test_the_reason_of_a_failed_item_can_be_sent():
    assert errors.ItemFailed("no such customer: é").reason == "no such customer: é"
    assert errors.ItemFailed("half a pair: \ud83d").reason == "half a pair: ?"
