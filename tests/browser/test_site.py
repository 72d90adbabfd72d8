"""The site of the documentation in a browser: it needs no other site, and fits a telephone."""

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
PAGES = ("index", "how-to/targets", "reference/http", "reference/library/tracker", "explanation/architecture")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the built site is served."""
    folder = tmp_path_factory.mktemp("site")
    command = ["build", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "mkdocs", *command], cwd=ROOT, capture_output=True, check=True)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(("name", "width"), [("index", 1280), *((name, 390) for name in PAGES)])
def test_a_page_fits_and_loads_nothing_from_elsewhere(browser, address, name, width):
    # Given a reader at a desk, or with a telephone
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        page, asked, said = context.new_page(), [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        # When a page is opened
        page.goto(f"{address}/{name}.html", wait_until="networkidle")
        # Then nothing is wider than the window, nothing is amiss, and everything comes from the site
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert said == []
        assert [url for url in asked if not url.startswith((address, "blob:", "data:"))] == []


def test_diagrams_are_drawn(browser, address):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{address}/explanation/architecture.html", wait_until="networkidle")
        # Material puts each drawing into a closed shadow root in the place of its source
        page.wait_for_function("document.querySelectorAll('div.mermaid').length === 2")
        assert page.locator("pre.mermaid").count() == 0


def test_the_search_finds_a_call(browser, address):
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{address}/index.html", wait_until="networkidle")
        # Typed, since the page reads what was written when a key comes up; it searches with every letter
        page.locator(".md-search__input").press_sequentially("redeliver")
        expect(page.locator(".md-search-result__item").first).to_contain_text("redeliver", ignore_case=True)
