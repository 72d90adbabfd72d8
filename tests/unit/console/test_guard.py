""""""

import asyncio
from itertools import count
from urllib.parse import urlencode

import pytest
from starlette.requests import Request

from fanin.console.guard import LAUNCHES, MAX_FORM, OPEN_AGAIN, SESSIONS, Sessions, form_token, read_form
from fanin.errors import AccessDenied, InvalidRequest, RequestTooLarge

HOSTS = frozenset({"127.0.0.1:8642", "localhost:8642"})
MINE = {"origin": "http://127.0.0.1:8642"}


@pytest.fixture
def guarded(browse):
    """A browser, and a launch token, of a console that answers only who was given one."""
    browser = browse(sessions=True, hosts=HOSTS)
    return browser, browser.app.state.console.sessions.launch()


def test_nobody_without_a_session_sees_anything(guarded):
    browser, _ = guarded
    for path in ("/", "/batches", "/live/batches", "/nowhere", "/?launch=guess", "/?launch="):
        answer = browser.get(path)
        assert (answer.status_code, answer.text.strip()) == (403, OPEN_AGAIN)


def test_a_launch_link_opens_a_session_once(guarded):
    # Given a launch link
    browser, token = guarded
    answer = browser.get(f"/batches?launch={token}")
    # Then it gets a cookie that no script and no other site can use, and the token leaves the address
    cookie = answer.headers["set-cookie"].lower()
    assert (answer.status_code, answer.headers["location"]) == (303, "/batches")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert token.lower() not in cookie
    assert browser.get("/").status_code == 200
    # And another browser cannot open the same link
    browser.cookies.clear()
    assert browser.get(f"/?launch={token}").status_code == 403


def test_a_browser_with_a_session_may_open_an_old_link(guarded):
    browser, token = guarded
    browser.get(f"/?launch={token}")
    again = browser.get(f"/?launch={token}")
    assert (again.status_code, again.headers["location"]) == (303, "/")


def test_a_link_never_leads_elsewhere(guarded):
    browser, token = guarded
    answer = browser.get(f"http://127.0.0.1:8642//evil.example/?launch={token}")
    assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8642", "127.0.0.1", "127.0.0.1:9", ""])
def test_other_hosts_are_not_answered(guarded, host):
    # Given a name that leads to this machine (DNS rebinding), and even a launch token
    browser, token = guarded
    # When a browser asks under that name
    answer = browser.get(f"/?launch={token}", headers={"host": host})
    assert answer.status_code == 421
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {**MINE, "sec-fetch-site": "cross-site"},
        {**MINE, "sec-fetch-site": "same-site"},
    ],
)
def test_forms_of_other_sites_are_refused(guarded, headers):
    browser, token = guarded
    browser.get(f"/?launch={token}")
    assert browser.post("/batches", headers=headers).status_code == 403


def test_forms_of_its_own_reach_the_pages(guarded):
    browser, token = guarded
    browser.get(f"/?launch={token}")
    answer = browser.post("/batches", headers={**MINE, "sec-fetch-site": "same-origin"})
    assert answer.status_code == 405  # the page takes no forms


def test_hosts_are_not_checked_where_another_has_done_it(browse):
    assert browse().get("/", headers={"host": "api.example"}).status_code == 200


@pytest.mark.parametrize("path", ["/static/nowhere", "/static/style.css", "/static/"])
def test_nothing_is_answered_and_no_session_is_replaced_without_a_session(guarded, path):
    # Given a browser that does not send its cookie, since a link of another site has led it here
    browser, _ = guarded
    # When it asks for what is no page
    answer = browser.get(path)
    # Then it learns nothing, and keeps the session that it has
    assert (answer.status_code, answer.text.strip()) == (403, OPEN_AGAIN)
    assert "set-cookie" not in answer.headers


def test_no_page_opens_a_session_where_links_do(guarded):
    browser, token = guarded
    browser.get(f"/?launch={token}")
    for path in ("/", "/nowhere", "/static/nowhere", "/batches?state=bad"):
        assert "set-cookie" not in browser.get(path).headers


# Launch links, sessions, and forms that pages of a session send.


def new() -> Sessions:
    numbers = count()
    return Sessions(lambda: f"secret {next(numbers)}")


def test_a_launch_token_opens_one_session():
    # Given a token
    sessions = new()
    token = sessions.launch()
    session, again = sessions.redeem(token), sessions.redeem(token)
    # Then only the first opens a session, which is not the token
    assert session is not None
    assert session != token
    assert again is None
    assert sessions.known(session)


def test_nothing_else_is_a_session():
    sessions = new()
    token = sessions.launch()
    for text in ("", "guess", token, "\udcff", None):
        assert not sessions.known(text)
    assert sessions.redeem("guess") is None
    assert sessions.redeem("\udcff") is None


def test_only_the_latest_are_known():
    # Given more tokens and sessions than are kept
    sessions = new()
    first = sessions.launch()
    for _ in range(LAUNCHES):
        sessions.launch()
    assert sessions.redeem(first) is None
    opened = [sessions.redeem(sessions.launch()) for _ in range(SESSIONS + 1)]
    assert not sessions.known(opened[0])
    assert all(sessions.known(session) for session in opened[1:])


def test_the_token_of_a_form_belongs_to_its_session():
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
    return urlencode({"form_token": token, **fields}).encode()


def test_the_fields_of_a_form_are_read():
    fields = read(body(form_token(SESSION), error="a&b=c \u00e9", empty=""))
    assert fields == {"error": "a&b=c \u00e9", "empty": ""}


@pytest.mark.parametrize("token", ["", form_token("another"), form_token(SESSION)[:-1], "\u00e9"])
def test_a_form_of_another_session_is_refused(token):
    with pytest.raises(AccessDenied, match="another session"):
        read(body(token, error="x"))
    with pytest.raises(AccessDenied):
        read(b"error=x")


@pytest.mark.parametrize("bad", [b"no form", b"a=b&" * 300 + b"a=b", b"a=\xff"])
def test_what_is_not_a_form_is_refused(bad):
    with pytest.raises(InvalidRequest, match="not a form"):
        read(bad)


def test_a_form_has_a_bounded_length():
    with pytest.raises(RequestTooLarge):
        read(body(form_token(SESSION), error="x" * MAX_FORM))
