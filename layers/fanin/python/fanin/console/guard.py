"""The guard in front of all pages: checks where a request comes from and whose it is, and sets headers.

Host: a page of another site can give its own name the address of this machine (DNS rebinding), and its
requests then carry that name. Origin: a form on another site can post to this port. Session: every program
and every page in a browser can reach a port of this machine, so the port alone says nothing; a console on a
developer's machine answers only who came by its launch link.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import URL, Headers, ImmutableMultiDict, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fanin.console.options import Options
from fanin.domain.latest import Latest
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from other hosts, so that a text that slips into a page cannot run."""

HEADERS: Final[dict[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # Tells other sites nothing. Under no-referrer, browsers call the origin of the console's forms null.
    "Referrer-Policy": "same-origin",
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


LAUNCHES: Final = 16
SESSIONS: Final = 64
"""How many are known at a time; the oldest is forgotten for another."""


class Sessions:
    """The launch tokens that were given out, and the sessions that they became.

    Args:
        secret: makes a text that nobody can guess.
    """

    def __init__(self, secret: Callable[[], str]) -> None:
        self._secret = secret
        self._launches: Latest[str, None] = Latest(LAUNCHES)
        self._sessions: Latest[str, None] = Latest(SESSIONS)

    def launch(self) -> str:
        """Give out a token that opens one session."""
        return _kept(self._launches, self._secret())

    def redeem(self, token: str) -> str | None:
        """Open the session of a launch token, which is used up; None if it is not valid."""
        digest = _digest(token)
        if digest not in self._launches:
            return None
        del self._launches[digest]
        return _kept(self._sessions, self._secret())

    def known(self, session: str | None) -> bool:
        """Whether a session was opened here."""
        return session is not None and _digest(session) in self._sessions


def keep(answer: Response, session: str, options: Options) -> None:
    """Have the browser keep a session, out of reach of scripts and of other sites."""
    answer.set_cookie(options.cookie, session, httponly=True, samesite="strict", secure=options.secure)


def _kept(known: Latest[str, None], secret: str) -> str:
    # Digests are looked up, so how long that takes says nothing about a secret.
    known[_digest(secret)] = None
    return secret


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


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


TOKEN: Final = "form_token"  # noqa: S105 - the name of a field
MAX_FORM: Final = 65_536
"""Bytes of a form."""


def form_token(session: str) -> str:
    """The token that a form of a session carries. Only who can read its pages knows it."""
    return hmac.new(session.encode(), b"form", sha256).hexdigest()


async def read_form(request: Request, session: str) -> ImmutableMultiDict[str, str]:
    """Read the fields of a form, without its token.

    Raises:
        AccessDenied: the form is not from a page of this session.
        RequestTooLarge: it is too long.
        InvalidRequest: it is not a form.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_FORM:
            raise RequestTooLarge(f"a form has at most {MAX_FORM:,} bytes")
    try:
        fields = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=200)
    except ValueError as error:
        raise InvalidRequest(f"the body is not a form: {error}") from error
    # Compared as bytes: a text may have characters that compare_digest does not take.
    given = dict(fields).get(TOKEN, "")
    if not hmac.compare_digest(given.encode(errors="surrogatepass"), form_token(session).encode()):
        raise AccessDenied("the form is from another session; go back, load the page again, and press again")
    return ImmutableMultiDict([pair for pair in fields if pair[0] != TOKEN])
