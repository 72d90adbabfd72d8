"""Launch links and sessions: a console on a developer's machine answers only who started it.

Every program and every page in a browser can reach a port of this machine, so the port alone says nothing.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from starlette.responses import Response

from fanin.console.options import Options

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
        self._launches: OrderedDict[str, None] = OrderedDict()
        self._sessions: OrderedDict[str, None] = OrderedDict()

    def launch(self) -> str:
        """Give out a token that opens one session."""
        return _kept(self._launches, self._secret(), LAUNCHES)

    def redeem(self, token: str) -> str | None:
        """Open the session of a launch token, which is used up; None if it is not valid."""
        digest = _digest(token)
        if digest not in self._launches:
            return None
        del self._launches[digest]
        return _kept(self._sessions, self._secret(), SESSIONS)

    def known(self, session: str | None) -> bool:
        """Whether a session was opened here."""
        return session is not None and _digest(session) in self._sessions


def keep(answer: Response, session: str, options: Options) -> None:
    """Have the browser keep a session, out of reach of scripts and of other sites."""
    answer.set_cookie(options.cookie, session, httponly=True, samesite="strict", secure=options.secure)


def form_token(session: str) -> str:
    """The token that a form of a session carries. Only who can read its pages knows it."""
    return hmac.new(session.encode(), b"form", sha256).hexdigest()


def _kept(known: OrderedDict[str, None], secret: str, most: int) -> str:
    # Digests are looked up, so how long that takes says nothing about a secret.
    known[_digest(secret)] = None
    while len(known) > most:
        known.popitem(last=False)
    return secret


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
