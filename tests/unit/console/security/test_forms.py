from __future__ import annotations

import asyncio
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from fanin.console.security.forms import MAX_FORM, TOKEN, read_form
from fanin.console.security.sessions import form_token
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge

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
