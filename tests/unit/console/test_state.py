from __future__ import annotations


def test_a_browser_without_a_session_gets_one_where_none_is_needed(browse) -> None:
    # Given a console whose callers somebody else has checked
    browser = browse(cookie="__Host-fanin")
    # When a browser comes, and comes again
    first, second = browser.get("/"), browser.get("/")
    # Then it got a cookie once, so that its forms can be told from those of others
    assert "__Host-fanin=" in first.headers["set-cookie"]
    assert "set-cookie" not in second.headers
