"""Checks a request to scatter, before anything is read or written."""

from __future__ import annotations

import json

from fanin.domain import limits
from fanin.domain.scatter import Scatter
from fanin.errors import InvalidRequest, RequestTooLarge


def check(scatter: Scatter) -> None:
    """Refuse a request that is malformed.

    Raises:
        InvalidRequest: a value is out of bounds, or contradicts another.
        RequestTooLarge: the message is too large, or has too many recipients.
    """
    if scatter.topic is not None and scatter.recipients:
        raise InvalidRequest("a scatter goes to recipients or to a topic, not to both; leave one of them out")
    if scatter.topic is None and scatter.where:
        raise InvalidRequest("where chooses among the registrations of a topic; name the topic, too")
    limits.pairs("where", scatter.where)
    limits.at_most("recipients", scatter.recipients, limits.MAX_RECIPIENTS)
    for to in scatter.recipients:
        limits.text("a recipient's name", to.name, limits.MAX_USER_KEY)
        limits.text("a recipient's channel", to.channel, limits.MAX_CHANNEL, least=1)
    if scatter.topic is not None:
        limits.name("topic", scatter.topic, limits.MAX_NAME)
    _check_message(scatter)
    if scatter.correlation_id is not None:
        limits.text("correlation_id", scatter.correlation_id, limits.MAX_CORRELATION_ID, least=1)
    limits.whole("timeout", scatter.timeout, limits.MIN_TIMEOUT, limits.MAX_TIMEOUT)
    limits.whole("max_retries", scatter.max_retries, 0, limits.MAX_RETRIES)
    _check_quorum(scatter.quorum)


def _check_message(scatter: Scatter) -> None:
    if not isinstance(scatter.body, str) or not scatter.body:
        raise InvalidRequest("body must be text, and not empty: queues refuse an empty message")
    if len(json.dumps(scatter.body)) > limits.MAX_REPLY:
        raise RequestTooLarge(f"the body is over {limits.MAX_REPLY} bytes; send a claim check")
    limits.text("type", scatter.type, limits.MAX_USER_KEY)
    limits.at_most("attributes", scatter.attributes, limits.MAX_ATTRIBUTES)
    for name, value in scatter.attributes.items():
        limits.text("an attribute's name", name, limits.MAX_USER_KEY, least=1)
        limits.text(f"attribute {name!r}", value, limits.MAX_USER_KEY, least=1)
        if name.startswith("fanin-"):
            raise InvalidRequest(f"attribute {name!r} is reserved for fanin; use another name")


def _check_quorum(quorum: float | None) -> None:
    if isinstance(quorum, float) and not 0 < quorum < 1:
        raise InvalidRequest(
            f"quorum {quorum} is not a share between 0 and 1; give a number of replies as an integer"
        )
    if quorum is not None and not isinstance(quorum, float):
        limits.whole("quorum", quorum, 1, limits.MAX_RECIPIENTS)
