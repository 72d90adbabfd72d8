"""The guard in front of all pages: checks where a request comes from, and sets headers.

Host: a page of another site can give its own name the address of this machine (DNS rebinding), and its
requests then carry that name. Origin: a form on another site can post to this port.
"""

from http import HTTPStatus
from typing import Final

from starlette.datastructures import URL, Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fanin.console.options import Options
from fanin.console.sessions import Sessions, keep

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from other hosts, so that a text that slips into a page cannot run."""

REFERRER: Final = "same-origin"
"""Tells other sites nothing. Under ``no-referrer``, browsers call the origin of the console's forms null."""

HEADERS: Final[dict[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": REFERRER,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
STORED_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
"""Cache-Control of static files, whose addresses change with their content."""
NEVER_STORED: Final = "no-store"
"""Cache-Control of pages: they show what others must not find in a cache."""


LAUNCH: Final = "launch"
"""Query parameter of a launch link."""
OPEN_AGAIN: Final = (
    "This console answers only the browser that opened its launch link, and each link works once. Open the"
    " link that `fanin ui` has printed, or press Enter there to get another."
)
_SAFE: Final = frozenset({"GET", "HEAD"})


class Guard:
    """Middleware that refuses requests from elsewhere, and sets the headers of every answer.

    Args:
        app: the pages.
        options: which hosts are answered, and whether sessions are needed.
        sessions: those that were opened.
    """

    def __init__(self, app: ASGIApp, options: Options, sessions: Sessions) -> None:
        self._app = app
        self._options = options
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("Cache-Control", NEVER_STORED)
                if "location" in headers:
                    _stay(Request(scope).url, headers)
            await send(message)

        refusal = self._refusal(Request(scope))
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, request: Request) -> Response | None:
        """The answer to a request that must not reach the pages; None if it may."""
        headers, options = request.headers, self._options
        if options.hosts is not None and headers.get("host", "").lower() not in options.hosts:
            return _no(HTTPStatus.MISDIRECTED_REQUEST, "This console is not served under that host name.")
        if request.method not in _SAFE and not _same_origin(headers, options.origins):
            return _no(HTTPStatus.FORBIDDEN, "The request comes from another site.")
        if not options.sessions:
            return None
        if request.method in _SAFE and (token := request.query_params.get(LAUNCH)) is not None:
            return self._launch(request, token)
        if not self._sessions.known(request.cookies.get(options.cookie)):
            return _no(HTTPStatus.FORBIDDEN, OPEN_AGAIN)
        return None

    def _launch(self, request: Request, token: str) -> Response:
        """Open the session of a launch link, and go to the same address without the token."""
        known = self._sessions.known(request.cookies.get(self._options.cookie))
        session = self._sessions.redeem(token)
        if session is None and not known:
            return _no(HTTPStatus.FORBIDDEN, OPEN_AGAIN)
        # Only the path: the rest of the address is the caller's.
        answer = RedirectResponse("/" + request.url.path.lstrip("/\\"), HTTPStatus.SEE_OTHER)
        if session is not None:
            keep(answer, session, self._options)
        return answer


def _stay(asked: URL, headers: MutableHeaders) -> None:
    """Redirect within the console by path alone: a proxy in front may have another name for this host."""
    here = f"{asked.scheme}://{asked.netloc}/"
    if headers["location"].startswith(here):
        headers["Location"] = "/" + headers["location"].removeprefix(here).lstrip("/\\")


def _same_origin(headers: Headers, origins: frozenset[str]) -> bool:
    """Whether a page of this console sent the request. Browsers name the origin of every POST."""
    origin, host = headers.get("origin", "").lower(), headers.get("host", "").lower()
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return False
    return origin in origins or (origin != "" and origin.partition("://")[2] == host)


def _no(status: HTTPStatus, why: str) -> Response:
    return PlainTextResponse(why + "\n", status)
