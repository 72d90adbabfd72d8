from __future__ import annotations

from fanin.console.security.sessions import form_token


def test_a_browser_without_a_session_gets_one_where_none_is_needed(browse) -> None:
    # Given a console whose callers somebody else has checked
    browser = browse(cookie="__Host-fanin")
    # When a browser comes, and comes again
    first, second = browser.get("/"), browser.get("/")
    # Then it got a cookie once, so that its forms can be told from those of others
    assert "__Host-fanin=" in first.headers["set-cookie"]
    assert "set-cookie" not in second.headers


def test_a_page_knows_the_token_of_its_session(service, browse) -> None:
    browser = browse()
    browser.get("/")
    shared = browser.app.state.console
    session = browser.cookies[shared.options.cookie]
    page = shared.templates._environment.from_string("{{ form_token }}")
    assert page.render(form_token=form_token(session)) == form_token(session)
