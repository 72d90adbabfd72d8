"""Reading a form."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import Request
from starlette.types import Message

from fanin.console.security.forms import MAX_FORM, TOKEN, read_form
from fanin.console.security.sessions import form_token
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge


def read(*parts: bytes, session: str = "s") -> ImmutableMultiDict[str, str]:
    left: list[Message] = [{"type": "http.request", "body": part, "more_body": True} for part in parts] + [
        {"type": "http.request", "body": b"", "more_body": False}
    ]

    async def receive() -> Message:
        return left.pop(0)

    request = Request({"type": "http", "method": "POST", "path": "/", "headers": []}, receive)
    return asyncio.run(read_form(request, session))


def body(fields: Sequence[str], session: str = "s") -> bytes:
    return "&".join([f"{TOKEN}={form_token(session)}", *fields]).encode()


def test_fields_are_read_without_the_token_and_several_times() -> None:
    found = read(body(["range=0..3", "queue="])[:50], body(["range=0..3", "queue="])[50:])
    assert found.multi_items() == [("range", "0..3"), ("queue", "")]


def test_the_last_token_counts() -> None:
    with pytest.raises(AccessDenied):
        read(body([f"{TOKEN}=other"]))


def test_a_form_of_another_session_is_refused() -> None:
    with pytest.raises(AccessDenied):
        read(body([], session="other"))


@pytest.mark.parametrize("form", [b"", b"no form", b"\xff=1", b"a=%ff&b"])
def test_what_is_not_a_form_is_refused(form: bytes) -> None:
    with pytest.raises((InvalidRequest, AccessDenied)):
        read(form)


def test_a_form_is_bounded_in_bytes_and_fields() -> None:
    with pytest.raises(RequestTooLarge):
        read(b"a=" + b"x" * MAX_FORM)
    with pytest.raises(InvalidRequest):
        read(body(["a=1"] * 300))
