"""The OpenAPI 3.1 document, made from the route table; ``python -m fanin.entry.http`` prints it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import fanin
from fanin import names
from fanin.entry.http.route import Route
from fanin.entry.http.statuses import STATUS
from fanin.wire.components import COMPONENTS
from fanin.wire.json_types import BATCH_ID, TEXT, JsonType, Schema
from fanin.wire.problems import PROBLEM

_ALWAYS: Final = (400, 401, 403, 429, 500, 503)
"""Statuses of any request: bad parameters, the gateway's authorization and throttling, and faults."""

_GATEWAY: Final[Schema] = {
    "type": "object",
    "description": "what API Gateway itself answers",
    "properties": {"message": {"type": "string"}},
}
_DESCRIPTION: Final = (
    "fanin tells you, exactly and at once, when a fan-out is finished. Points in time are RFC 3339, "
    "durations whole seconds, batch ids integers below 2^53. Every call may be repeated. Where one takes an "
    f"{names.IDEMPOTENCY_HEADER}, a repeat without it opens another batch, adds more items, starts another "
    "scatter or puts the work in again. Events are sent again, and counts of estimated batches counted again."
)


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Make the document of a route table."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fanin",
            "version": fanin.__version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"sigv4": []}],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS,
            "responses": {str(status): _problem(status) for status in sorted({*_ALWAYS, *STATUS.values()})},
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4, service execute-api",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                },
                "jwt": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "with auth=jwt: a token with the scope of the operation's group",
                },
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "x-fanin-group": route.group.value,
        "security": _security(route),
        "tags": ["carlyle" if route.path.startswith(names.CARLYLE_ROOT) else "fanin"],
        "parameters": _parameters(route),
        "responses": {str(route.status): _success(route)}
        | {str(status): {"$ref": f"#/components/responses/{status}"} for status in _statuses(route)},
    }
    if route.body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": route.body.schema}},
        }
    return operation


def _security(route: Route) -> list[dict[str, list[str]]]:
    """A signature, or a token with one of the scopes."""
    scopes = [[f"{names.SCOPE_PREFIX}{group}"] for group in route.groups]
    return [{"sigv4": []}, *({"jwt": scope} for scope in scopes)]


def _parameters(route: Route) -> list[dict[str, Any]]:
    path = {name: route.named.get(name, BATCH_ID) for name in re.findall(r"\{(\w+)\}", route.path)}
    return [
        {"name": name, "in": place, "required": required, "schema": kind.schema}
        for place, required, kinds in (
            ("path", True, path),
            ("query", True, route.required),
            ("query", False, route.optional),
            ("header", False, {**route.headers, names.CORRELATION_HEADER: _CORRELATION_ID}),
        )
        for name, kind in kinds.items()
    ]


def _statuses(route: Route) -> list[int]:
    own = {STATUS[error] for error in route.errors}
    # A name with a control character makes a path that no route takes.
    named = (404,) if "{" in route.path else ()
    return sorted({*_ALWAYS, *own, *named, *((413,) if route.body else ())})


def _success(route: Route) -> Mapping[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(route.status).phrase, "headers": _CORRELATION}
    if route.answer:
        answer["content"] = {"application/json": {"schema": route.answer.schema}}
    return answer


_BUSY: Final = (429, 503)
_RETRY_AFTER: Final = {
    "Retry-After": {"description": "seconds", "schema": {"type": "integer"}},
}
_CORRELATION: Final = {
    names.CORRELATION_HEADER: {"description": "as sent, else the request's id", "schema": {"type": "string"}}
}
_CORRELATION_ID: Final[JsonType[str]] = TEXT.with_keywords(
    description="goes to the logs, if it is at most 128 visible ASCII characters; else it is ignored"
)


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        **({"headers": _RETRY_AFTER} if status in _BUSY else {}),
        "content": {
            "application/problem+json": {"schema": PROBLEM.schema},
            "application/json": {"schema": _GATEWAY},
        },
    }
