"""One test's visit to pages: a context of its own, its faults, and what is kept of it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Error, Page

from fanin.local.stack import CHECKOUT, FOLDER
from tests.browser.faults import Faults
from tests.browser.views import View

ARTIFACTS: Final = "FANIN_ARTIFACTS"
"""Environment variable: the folder for what is kept of tests."""
SCREENSHOTS: Final = "FANIN_SCREENSHOTS"
"""Environment variable: if it is set, a screenshot of every test is kept, not only of those that fail."""


def artifacts() -> Path:
    return Path(os.environ.get(ARTIFACTS) or CHECKOUT / FOLDER / "artifacts" / "browser")


class Visit:
    """A page in a context of its own, seen in one way.

    Args:
        browser: a browser that runs.
        view: how the page is seen.
        name: of the test; names the folder of its artifacts.
    """

    def __init__(self, browser: Browser, view: View, name: str) -> None:
        self.faults = Faults()
        self.folder = artifacts() / re.sub(r"[^\w.=-]+", "-", name).strip("-")
        shutil.rmtree(self.folder, ignore_errors=True)
        self._context = browser.new_context(
            viewport={"width": view.width, "height": view.height},
            color_scheme=view.scheme,
            reduced_motion=view.motion,
            java_script_enabled=view.javascript,
        )
        self._context.set_default_timeout(60_000)
        self.faults.watch(self._context)
        self._context.tracing.start(snapshots=True)
        self.page: Page = self._context.new_page()

    def check(self) -> None:
        """Fail if a page had faults up to now."""
        for page in self._context.pages:
            page.title()  # events that the page has sent before this answer have now arrived
        self.faults.check()

    def passed(self) -> None:
        """Keep a screenshot if the environment asks for it."""
        if os.environ.get(SCREENSHOTS):
            self._screenshots()

    def failed(self, reason: str) -> None:
        """Keep screenshots, the trace and the reason; `playwright show-trace` opens the trace."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "reason.txt").write_text(reason)
        self._context.tracing.stop(path=self.folder / "trace.zip")
        self._screenshots()

    def close(self) -> None:
        self._context.close()

    def _screenshots(self) -> None:
        for number, page in enumerate(self._context.pages):
            try:
                page.screenshot(path=self.folder / f"page{number or ''}.png", full_page=True)
            except Error as error:
                (self.folder / f"page{number or ''}.txt").write_text(f"no screenshot: {error}")
