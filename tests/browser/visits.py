"""One test's visit to pages: a context of its own, its faults, and what is kept of it."""

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
KEEP: Final = "FANIN_KEEP"
"""Environment variable: if it is set, pages and the trace of every test are kept. Traces cost a fifth."""


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
            viewport={"width": 1280, "height": 800},
            reduced_motion=view.motion,
            java_script_enabled=view.javascript,
        )
        self._context.set_default_timeout(60_000)
        self.faults.watch(self._context)
        if KEEP in os.environ:
            self._context.tracing.start(snapshots=True)
        self.page: Page = self._context.new_page()

    def check(self) -> None:
        """Fail if a page had faults up to now."""
        for page in self._context.pages:
            page.title()  # events that the page has sent before this answer have now arrived
        self.faults.check()

    def passed(self) -> None:
        """Keep what the environment asks for."""
        if KEEP in os.environ:
            self._keep()

    def failed(self, reason: str) -> None:
        """Keep the reason, screenshots, and the pages as they are."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "reason.txt").write_text(reason)
        self._keep()

    def close(self) -> None:
        self._context.close()

    def _keep(self) -> None:
        if KEEP in os.environ:
            self._context.tracing.stop(path=self.folder / "trace.zip")
        for number, page in enumerate(self._context.pages):
            file = self.folder / f"page{number or ''}"
            try:
                page.screenshot(path=file.with_suffix(".png"), full_page=True)
                file.with_suffix(".html").write_text(page.content())
            except Error as error:
                file.with_suffix(".txt").write_text(f"no screenshot: {error}")
