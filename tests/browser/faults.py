"""What must not happen on a page: errors, failed requests, requests elsewhere, breaches of its policy."""

from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Request, Response, WebError

_BREACHES: Final = """
addEventListener("securitypolicyviolation", breach => __fault(
  `${breach.effectiveDirective} of the content security policy forbids ${breach.blockedURI}` +
  ` (${breach.sourceFile}:${breach.lineNumber}) ${breach.sample}`
));
"""


class Faults:
    """The faults of all pages of a context, except for those that the test expects."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._expected: list[str] = []
        self._home: str | None = None

    def watch(self, context: BrowserContext) -> None:
        context.on("weberror", self._error)
        context.on("console", self._message)
        context.on("request", self._request)
        context.on("requestfailed", self._failed)
        context.on("response", self._response)
        context.expose_function("__fault", self._breach)
        context.add_init_script(_BREACHES)

    def expect(self, *texts: str) -> None:
        """Accept faults with any of these texts. Each must happen at least once before the test ends."""
        self._expected += texts

    def check(self) -> None:
        """Fail if there was a fault that was not expected, or none that was."""
        unexpected = [fault for fault in self._found if not any(text in fault for text in self._expected)]
        assert not unexpected, "\n".join(["faults of the page:", *unexpected])
        missing = [text for text in self._expected if not any(text in fault for fault in self._found)]
        assert not missing, "\n".join(["expected faults that did not happen:", *missing])

    def _breach(self, text: str) -> None:
        self._found.append(text)

    def _error(self, error: WebError) -> None:
        self._found.append(f"uncaught: {error.error}")

    def _message(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._found.append(f"console: {message.text} ({message.location['url']})")

    def _request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in {"http", "https", "ws", "wss"}:
            return
        self._home = self._home or url.netloc
        if url.netloc != self._home:
            self._found.append(f"request to another host than {self._home}: {request.url}")

    def _failed(self, request: Request) -> None:
        # A stream of events has no end: it fails whenever its page closes or goes on to another.
        if request.resource_type == "eventsource" and request.failure == "net::ERR_ABORTED":
            return
        self._found.append(f"failed request: {request.method} {request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self._found.append(f"answer {response.status}: {response.request.method} {response.url}")
