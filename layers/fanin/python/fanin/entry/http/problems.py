"""Errors as callers get them: problem details (RFC 9457), one type for each class of the error tree."""

import json
from http import HTTPStatus
from typing import Any, Final, TypeAlias

from aws_lambda_powertools.event_handler import Response

from fanin import names
from fanin.errors import STATUS, FaninError, ItemHasChild
from fanin.wire.json_types import Json

Headers: TypeAlias = dict[str, str | list[str]]
_RETRY_AFTER: Final = 1  # seconds, for retryable errors without a retry_after


def of(error: FaninError, request_id: str) -> Response[str]:
    """Make the problem of an error.

    Args:
        error: an error whose class is in ``STATUS``.
        request_id: of API Gateway; finds the request in the logs.
    """
    status, more, headers = STATUS[type(error)], dict[str, Any](), Headers()
    if isinstance(error, ItemHasChild):
        more["child"] = error.child
    retry_after = error.retry_after
    if retry_after is None and error.retryable:
        retry_after = _RETRY_AFTER
    if retry_after is not None:
        more["retry_after"] = retry_after
        headers["Retry-After"] = str(retry_after)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        headers["RateLimit"] = _exhausted(error.code, retry_after)
    return problem(status, error.code, str(error), request_id, headers, **more)


def problem(
    status: int, code: str, detail: str, request_id: str, headers: Headers | None = None, **more: Json
) -> Response[str]:
    """Make a problem.

    Args:
        status: HTTP status.
        code: stable name of the problem.
        detail: what was expected, what came, what to do.
        request_id: of API Gateway.
        headers: of the answer.
        **more: further members.
    """
    body = {
        "type": names.PROBLEM_ROOT + code,
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "request_id": request_id,
        **more,
    }
    return Response(status, "application/problem+json", json.dumps(body), headers=headers)


def _exhausted(code: str, retry_after: int | None) -> str:
    """The field RateLimit of a limit that has no room left (draft-ietf-httpapi-ratelimit-headers-10).

    A limit of fanin counts what is pending, and no time window. So there is no quota a time that a
    RateLimit-Policy could name, and the seconds until there may be room are a guess.
    """
    return f'"{code}";r=0' + ("" if retry_after is None else f";t={retry_after}")
