"""The API over HTTP, for tests: the real handler behind a WSGI server."""

import base64
import uuid
from typing import Any
from urllib.parse import parse_qsl, unquote

from werkzeug.wrappers import Request, Response

from fanin.adapters.memory import Memory
from fanin.app.api import Fanin
from fanin.app.services import Services
from fanin.entry.http.application import application, serve
from tests.unit.entry.conftest import CONTEXT


class Gateway:
    """An HTTP API in front of the function, as a WSGI application.

    Args:
        services: what it answers from; by default the services in memory.
        compresses: whether clients that take compressed answers get them; schemathesis says so, and does
            not unpack them.
    """

    def __init__(self, services: Fanin | None = None, *, compresses: bool = False) -> None:
        self._compresses = compresses
        behind = services or Services(Memory().ports())
        self.app = application(lambda: behind)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        request = Request(environ)
        query: dict[str, str] = {}
        for name, value in parse_qsl(request.query_string.decode(), keep_blank_values=True):
            query[name] = f"{query[name]},{value}" if name in query else value
        headers = {name.lower(): value for name, value in request.headers.items()}
        if not self._compresses:
            headers.pop("accept-encoding", None)
        event = {
            "version": "2.0",
            "rawPath": unquote(request.path),
            "rawQueryString": request.query_string.decode(),
            "queryStringParameters": query,
            "headers": headers,
            "requestContext": {
                "http": {"method": request.method, "path": request.path},
                "requestId": str(uuid.uuid4()),
                "stage": "$default",
            },
            "body": request.get_data().decode("utf-8", "replace"),
            "isBase64Encoded": False,
        }
        answer = serve(self.app, event, CONTEXT)
        body = base64.b64decode(answer["body"]) if answer.get("isBase64Encoded") else answer["body"]
        return Response(body, answer["statusCode"], answer["headers"])(environ, start_response)
