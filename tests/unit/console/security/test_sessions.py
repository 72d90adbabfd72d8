from __future__ import annotations

from itertools import count

from fanin.console.security.sessions import LAUNCHES, SESSIONS, Sessions, form_token


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
