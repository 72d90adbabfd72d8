"""The console as a function behind the API, whose authorizer decides who gets here.

Nothing that matters is kept between two answers, since another process may give the next one.
"""

import sys
from functools import cache
from http import HTTPStatus
from typing import Any

from aws_lambda_powertools.utilities.data_classes import APIGatewayProxyEventV2
from mangum import Mangum
from mangum.types import ASGI
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from fanin import names
from fanin.app.services import Services
from fanin.console.actions.log import log_to
from fanin.console.application import console
from fanin.console.options import Options
from fanin.domain.access import AccessGroup
from fanin.entry import wiring
from fanin.entry.http.callers import caller_of, groups_of
from fanin.entry.settings import Settings


def respond(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer a request that API Gateway hands over."""
    return _served()(event, context)


@cache
def _served() -> Mangum:
    settings = Settings.from_env()
    variables = settings.environment
    options = Options(
        name=variables.get("POWERTOOLS_SERVICE_NAME", "fanin"),
        write=variables.get(names.ENV_CONSOLE_WRITE) == "true",
        root=names.CONSOLE_ROOT,
        origins=frozenset(filter(None, variables.get(names.ENV_CONSOLE_ORIGINS, "").split(","))),
        sessions=False,
        # A browser sends it to this host only, and only encrypted (RFC 6265bis, section 4.1.3.2).
        cookie="__Host-fanin",
        secure=True,
        every=5.0,
    )
    log_to(sys.stdout, variables.get("POWERTOOLS_LOG_LEVEL", "INFO"))
    pages = console(Services(wiring.connect(settings)), options)
    return Mangum(_known(pages, settings.jwt_scope_prefix), lifespan="off")


def _known(app: ASGIApp, scope_prefix: str) -> ASGI:
    """Tells the pages who sends a request and what they may do, as API Gateway has found out.

    Args:
        app: the pages.
        scope_prefix: of the scopes that tokens need; empty if they need none.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        event = APIGatewayProxyEventV2(scope["aws.event"])
        scope["fanin.caller"] = caller_of(event)
        scope["fanin.request_id"] = event.request_context.get("requestId")
        if scope_prefix:
            scope["fanin.groups"] = groups = groups_of(event, scope_prefix)
            if AccessGroup.READ not in groups:
                says = f"The console needs a token with the scope {scope_prefix}{AccessGroup.READ}."
                await PlainTextResponse(says, HTTPStatus.FORBIDDEN)(scope, receive, send)
                return
        await app(scope, receive, send)

    return answer
