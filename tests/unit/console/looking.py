"""What one reads on a page, and where its links lead."""

import re
from collections.abc import Iterator
from html import unescape

from starlette.testclient import TestClient

HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


def text_of(page: str) -> str:
    """What one reads on a page, in one line."""
    apart = re.sub(r"</?(?:d[dtl]|div|t[dhr]|li|p|h\d)\b[^>]*>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", apart))


def words(page: str) -> str:
    """What a page says, without its markup and with all that stands side by side apart."""
    apart = re.sub(r"</(dt|dd|th|td|p|li|a|span)>", " ", page)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", apart)))


def following(page: str) -> str:
    """The address of the next page; empty if there is none."""
    link = re.search(r'<a [^>]*rel="next"[^>]*>', page)
    return unescape(re.findall(r'href="([^"]*)"', link[0])[0]) if link else ""


def pages_from(browser: TestClient, address: str) -> Iterator[str]:
    """A page and all that follow it, none of which is large."""
    while address:
        answer = browser.get(address)
        assert len(answer.content) < 100_000
        yield answer.text
        address = following(answer.text)


def live_of(page: str) -> str:
    """The address of the live view of a page."""
    found = re.search(r'data-live="([^"]*)"', page)
    assert found is not None
    return unescape(found[1])
