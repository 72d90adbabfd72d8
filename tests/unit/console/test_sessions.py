"""Launch links, sessions, and forms that pages of a session send."""

from __future__ import annotations

import asyncio
from itertools import count
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from fanin.console.sessions import LAUNCHES, MAX_FORM, SESSIONS, TOKEN, Sessions, form_token, read_form
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge


def new() -> Sessions:
    numbers = count()
    return Sessions(lambda: f"secret {next(numbers)}")


def test_a_launch_token_opens_one_session() -> None:
    # Given a token
    sessions = new()
    token = sessions.launch()
    # When it is redeemed twice
    session, again = sessions.redeem(token), sessions.redeem(token)
    # Then only the first opens a session, which is not the token
    assert session is not None
    assert session != token
    assert again is None
    assert sessions.known(session)


def test_nothing_else_is_a_session() -> None:
    sessions = new()
    token = sessions.launch()
    for text in ("", "guess", token, "\udcff", None):
        assert not sessions.known(text)
    assert sessions.redeem("guess") is None
    assert sessions.redeem("\udcff") is None


def test_only_the_latest_are_known() -> None:
    # Given more tokens and sessions than are kept
    sessions = new()
    first = sessions.launch()
    for _ in range(LAUNCHES):
        sessions.launch()
    assert sessions.redeem(first) is None
    opened = [sessions.redeem(sessions.launch()) for _ in range(SESSIONS + 1)]
    # Then the oldest are forgotten
    assert not sessions.known(opened[0])
    assert all(sessions.known(session) for session in opened[1:])


def test_the_token_of_a_form_belongs_to_its_session() -> None:
    assert form_token("a") == form_token("a")
    assert form_token("a") != form_token("b")
    assert "secret" not in form_token("secret")


SESSION = "session"


def read(body: bytes, session: str = SESSION) -> dict[str, str]:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": body, "more_body": False}

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    return dict(asyncio.run(read_form(request, session)))


def body(token: str, **fields: str) -> bytes:
    return urlencode({TOKEN: token, **fields}).encode()


def test_the_fields_of_a_form_are_read() -> None:
    fields = read(body(form_token(SESSION), error="a&b=c \u00e9", empty=""))
    assert fields == {"error": "a&b=c \u00e9", "empty": ""}


@pytest.mark.parametrize("token", ["", form_token("another"), form_token(SESSION)[:-1], "\u00e9"])
def test_a_form_of_another_session_is_refused(token) -> None:
    with pytest.raises(AccessDenied, match="another session"):
        read(body(token, error="x"))
    with pytest.raises(AccessDenied):
        read(b"error=x")


@pytest.mark.parametrize("bad", [b"no form", b"a=b&" * 300 + b"a=b", b"a=\xff"])
def test_what_is_not_a_form_is_refused(bad) -> None:
    with pytest.raises(InvalidRequest, match="not a form"):
        read(bad)


def test_a_form_has_a_bounded_length() -> None:
    with pytest.raises(RequestTooLarge):
        read(body(form_token(SESSION), error="x" * MAX_FORM))
