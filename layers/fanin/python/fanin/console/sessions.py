"""Launch links and sessions: a console on a developer's machine answers only who started it.

Every program and every page in a browser can reach a port of this machine, so the port alone says nothing.
"""

import hmac
from collections.abc import Callable
from hashlib import sha256
from typing import Final
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.responses import Response

from fanin.console.options import Options
from fanin.domain.latest import Latest
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge

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


def form_token(session: str) -> str:
    """The token that a form of a session carries. Only who can read its pages knows it."""
    return hmac.new(session.encode(), b"form", sha256).hexdigest()


def _kept(known: Latest[str, None], secret: str) -> str:
    # Digests are looked up, so how long that takes says nothing about a secret.
    known[_digest(secret)] = None
    return secret


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


TOKEN: Final = "form_token"  # noqa: S105 - the name of a field
MAX_FORM: Final = 65_536
"""Bytes of a form."""
_MAX_FIELDS: Final = 200


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
        fields = parse_qsl(
            body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=_MAX_FIELDS
        )
    except ValueError as error:
        raise InvalidRequest(f"the body is not a form: {error}") from error
    # Compared as bytes: a text may have characters that compare_digest does not take.
    given = dict(fields).get(TOKEN, "")
    if not hmac.compare_digest(given.encode(errors="surrogatepass"), form_token(session).encode()):
        raise AccessDenied("the form is from another session; go back, load the page again, and press again")
    return ImmutableMultiDict([pair for pair in fields if pair[0] != TOKEN])
