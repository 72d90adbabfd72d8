"""The OpenAPI 3.1 document, made from the route table; ``python -m fanin.entry.http`` prints it."""

import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

import fanin
from fanin import names
from fanin.entry.http import descriptions
from fanin.entry.http.calls import Call
from fanin.entry.http.route import HttpRoute
from fanin.entry.http.schemas import Schemas, explained
from fanin.errors import STATUS
from fanin.wire.json_types import BATCH_ID, IDEMPOTENCY_KEY, TEXT, JsonType, Schema
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


def document(routes: Sequence[HttpRoute]) -> dict[str, Any]:
    """Make the document of a route table."""
    schemas = Schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "fanin",
            "version": fanin.__version__,
            "description": _DESCRIPTION,
            "contact": {"name": "The fanin authors"},
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": text} for name, text in descriptions.TAGS.items()],
        "servers": [{"url": "/"}],
        "security": [{"sigv4": []}, {"jwt": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.components(),
            "responses": {
                str(status): _problem(status, schemas) for status in sorted({*_ALWAYS, *STATUS.values()})
            },
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
                    "description": "with auth=jwt: a token with one of the scopes of the operation",
                },
            },
        },
    }


def _operation(route: HttpRoute, schemas: Schemas) -> dict[str, Any]:
    description = explained(route.act.method if isinstance(route.act, Call) else route.act)
    operation: dict[str, Any] = {
        "operationId": route.operation,
        "summary": description.partition(".")[0],
        "x-fanin-group": route.group.value,
        "x-fanin-scopes": [f"{names.SCOPE_PREFIX}{group}" for group in route.groups],
        "description": description,
        "tags": [_tag(route.path)],
        "parameters": _parameters(route),
        "responses": {str(route.status): _success(route, schemas)}
        | {str(status): {"$ref": f"#/components/responses/{status}"} for status in _statuses(route)},
    }
    if route.body:
        content = {"application/json": {"schema": route.body.schema}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: HttpRoute) -> list[dict[str, Any]]:
    path = {name: route.named.get(name, BATCH_ID) for name in re.findall(r"\{(\w+)\}", route.path)}
    words = descriptions.FIELDS | descriptions.PARAMETERS
    return [
        {
            "name": name,
            "in": place,
            "required": required,
            "description": kind.schema.get("description") or words.get(name, name),
            "schema": {key: value for key, value in kind.schema.items() if key != "description"},
        }
        for place, required, kinds in (
            ("path", True, path),
            ("query", True, route.required),
            ("query", False, route.optional),
            ("header", False, {**(_KEY if route.keyed else {}), names.CORRELATION_HEADER: _CORRELATION_ID}),
        )
        for name, kind in kinds.items()
    ]


def _statuses(route: HttpRoute) -> list[int]:
    own = {STATUS[error] for error in route.raises}
    # A name with a control character makes a path that no route takes.
    named = (404,) if "{" in route.path else ()
    return sorted({*_ALWAYS, *own, *named, *((413, 415) if route.body else ())})


def _success(route: HttpRoute, schemas: Schemas) -> Mapping[str, Any]:
    headers = dict(_CORRELATION)
    if route.location is not None:
        headers["Location"] = _LOCATION
    if route.status == HTTPStatus.CREATED and route.keyed:
        headers[names.REPLAYED_HEADER] = _REPLAYED
    answer: dict[str, Any] = {"description": HTTPStatus(route.status).phrase, "headers": headers}
    if route.answer:
        answer["content"] = {"application/json": {"schema": schemas.of_answer(route.answer)}}
    return answer


def _header(description: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind, **more}}


_RETRY_AFTER: Final = {"Retry-After": _header("seconds; not from API Gateway", "integer")}
_NO_ROOM: Final = "no room: the limit, r=0, and in t the seconds of Retry-After; not from API Gateway"
_OF_PROBLEMS: Final = {429: _RETRY_AFTER | {"RateLimit": _header(_NO_ROOM)}, 503: _RETRY_AFTER}
_LOCATION: Final = _header("path of what was made, or of what it was added to", format="uri-reference")
_REPLAYED: Final = _header(
    "true if the key was used before, so that nothing was opened; else left out", enum=["true"]
)
_CORRELATION: Final = {names.CORRELATION_HEADER: _header("as sent, else the request's id")}
_CORRELATION_ID: Final[JsonType[str]] = TEXT.with_keywords(
    description="goes to the logs, if it is at most 128 visible ASCII characters; else it is ignored"
)
_KEY: Final = {names.IDEMPOTENCY_HEADER: IDEMPOTENCY_KEY}


def _tag(path: str) -> str:
    """The group of a path."""
    if path.startswith(names.CARLYLE_ROOT):
        return "carlyle"
    first, *below = path.removeprefix(names.API_ROOT).strip("/").split("/")
    part = below[1] if first == "batches" and below[1:] else first
    return next((tag for tag, parts in descriptions.TAGGED.items() if part in parts), first)


def _problem(status: int, schemas: Schemas) -> dict[str, Any]:
    return {
        "description": HTTPStatus(status).phrase,
        **({"headers": _OF_PROBLEMS[status]} if status in _OF_PROBLEMS else {}),
        "content": {
            "application/problem+json": {"schema": schemas.of_answer(PROBLEM)},
            "application/json": {"schema": _GATEWAY},
        },
    }
