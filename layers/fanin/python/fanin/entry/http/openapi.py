"""The OpenAPI 3.1 document, made from the route table; ``python -m fanin.entry.http`` prints it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import fanin
from fanin import names
from fanin.entry.http.components import SCHEMAS
from fanin.entry.http.route import Route
from fanin.entry.http.schemas import Schema, ref
from fanin.entry.http.statuses import STATUS

_ALWAYS: Final = (400, 401, 403, 429, 500, 503)
"""What any request can meet: bad parameters, the gateway's authorization and throttle, and faults."""

_GATEWAY: Final[Schema] = {
    "type": "object",
    "description": "what API Gateway itself answers",
    "properties": {"message": {"type": "string"}},
}
_DESCRIPTION: Final = (
    "fanin tells you, exactly and at once, when a fan-out is finished. Points in time are RFC 3339, "
    "durations whole seconds, batch ids integers below 2^53. Every call may be repeated; only adding items "
    f"without an {names.IDEMPOTENCY_HEADER} adds again, starting a scatter without one starts another, and "
    "counts of estimated batches are counted again."
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
            "schemas": SCHEMAS,
            "responses": {str(status): _problem(status) for status in sorted({*_ALWAYS, *STATUS.values()})},
            "securitySchemes": {
                "sigv4": {
                    "type": "apiKey",
                    "name": "Authorization",
                    "in": "header",
                    "description": "AWS Signature Version 4, service execute-api",
                    "x-amazon-apigateway-authtype": "awsSigv4",
                }
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": route.summary,
        "tags": ["carlyle" if route.path.startswith(names.CARLYLE_ROOT) else "fanin"],
        "parameters": _parameters(route),
        "responses": {str(route.status): _success(route)}
        | {str(status): {"$ref": f"#/components/responses/{status}"} for status in _statuses(route)},
    }
    if route.body:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": ref(route.body)}},
        }
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    path = {
        name: route.named.get(name) or _identifier(route) for name in re.findall(r"\{(\w+)\}", route.path)
    }
    return [
        {"name": name, "in": place, "required": required, "schema": schema}
        for place, required, schemas in (
            ("path", True, path),
            ("query", True, route.required),
            ("query", False, route.optional),
            ("header", False, {**route.headers, names.CORRELATION_HEADER: _CORRELATION_ID}),
        )
        for name, schema in schemas.items()
    ]


def _identifier(route: Route) -> Schema:
    estimated = route.path.startswith(f"{names.CARLYLE_ROOT}/estimated")
    return {"type": "string", "format": "uuid"} if estimated else SCHEMAS["Batch"]["properties"]["batch_id"]


def _statuses(route: Route) -> list[int]:
    own = {STATUS[error] for error in route.errors}
    return sorted({*_ALWAYS, *own, *((413,) if route.body else ())})


def _success(route: Route) -> Mapping[str, Any]:
    answer: dict[str, Any] = {"description": HTTPStatus(route.status).phrase, "headers": _CORRELATION}
    if route.answer:
        answer["content"] = {"application/json": {"schema": ref(route.answer)}}
    return answer


_BUSY: Final = (429, 503)
_RETRY_AFTER: Final = {
    "Retry-After": {"description": "seconds", "schema": {"type": "integer"}},
}
_CORRELATION: Final = {
    names.CORRELATION_HEADER: {"description": "as sent, else the request's id", "schema": {"type": "string"}}
}
_CORRELATION_ID: Final[Schema] = {
    "type": "string",
    "description": "goes to the logs; taken if it is at most 128 visible ASCII characters, else left",
}


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        **({"headers": _RETRY_AFTER} if status in _BUSY else {}),
        "content": {
            "application/problem+json": {"schema": ref("Problem")},
            "application/json": {"schema": _GATEWAY},
        },
    }
