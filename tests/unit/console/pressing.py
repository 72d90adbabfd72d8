"""A person at the console: reads the question of an action, and presses its button."""

import re
from html import unescape
from typing import Any

from starlette.testclient import TestClient

from fanin.console import Options, console
from fanin.console.state import Console
from fanin.testing import InMemoryService
from tests.unit.console.calls import Calls

Response = Any
ORIGIN = "http://127.0.0.1:8642"


class Person:
    """Somebody with a browser, and a console that has buttons.

    Args:
        service: that the console shows.
        fanin: what the console calls; the service by default.
        options: of the console.

    Attributes:
        calls: of fanin by the console.
        console: the console.
    """

    def __init__(self, service: InMemoryService, fanin: Any = None, **options: Any) -> None:
        self.calls = Calls()
        app = console(
            self.calls.of(fanin or service.services),
            Options(**{"sessions": False, "write": True, **options}),
            now=service.clock.now,
        )
        self.console: Console = app.state.console
        self.browser = TestClient(app, base_url=ORIGIN, follow_redirects=False)
        self.token = ""

    def look(self, path: str) -> Response:
        """Open a page."""
        answer = self.browser.get(path)
        if found := re.search(r'name="form_token" value="(\w+)"', answer.text):
            self.token = found[1]
        return answer

    def press(self, path: str, **fields: str) -> Response:
        """Open the question, and send its form to the address that it names; again, if it asks no more."""
        asked = self.look(path)
        target = form_of(asked) or path
        return self.send(target, **fields)

    def send(self, path: str, **fields: str) -> Response:
        """Send a form with the token of the last question."""
        return self.browser.post(path, data={"form_token": self.token, **fields}, headers={"Origin": ORIGIN})


def form_of(answer: Response) -> str:
    """The address of the form that does something; empty if a page has none."""
    found = re.search(r'<form class="do" method="post" action="([^"]*)"', answer.text)
    return unescape(found[1]) if found else ""


def text_of(answer: Response) -> str:
    """What a page says, in one line."""
    (main,) = re.findall(r"<main.*?</main>", answer.text, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())


def buttons_of(answer: Response) -> list[str]:
    """The texts of the buttons of a page."""
    found = re.findall(r"<button[^>]*>([^<]*)</button>", answer.text.partition("<main")[2])
    return [unescape(text) for text in found]
