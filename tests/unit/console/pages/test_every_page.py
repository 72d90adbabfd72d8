"""What holds for every page: few calls, hostile texts stay texts, live views; what is not there is said."""

import json
import re
from html import unescape

import pytest
from starlette.testclient import TestClient

from fanin.console import Options, console
from fanin.testing import InMemoryService
from tests.browser.gallery import Gallery, Words
from tests.unit.console.calls import Calls
from tests.unit.console.looking import HOSTILE, live_of

CALLS = {
    "overview": "buffers.list buffers.status diagnostics.attention ledger.counts ledger.list*2"
    " ledger.status*7",
    "batches": "ledger.list",
    "billion": "diagnostics.why ledger.errors ledger.picture ledger.status",
    "why of billion": "diagnostics.why ledger.status",
    "missing of billion": "ledger.missing ledger.status",
    "tab first": "ledger.errors ledger.picture ledger.status redrives.redrives",
    "tab picture": "ledger.picture",
    "tab failures": "ledger.errors ledger.failures ledger.status redrives.redrives",
    "tab missing": "ledger.missing ledger.status redrives.redrives",
    "tab results": "ledger.status redrives.redrives",
    "tab why": "diagnostics.why ledger.status redrives.redrives",
    "tab targets": "ledger.status ledger.targets redrives.redrives",
    "tab redrives": "ledger.status redrives.redrives*2",
    "tab children": "ledger.list ledger.status redrives.redrives",
    "tab events": "ledger.failures ledger.status*2 redrives.redrives*2",
    "tab cost": "ledger.status redrives.redrives",
    "held": "diagnostics.why ledger.errors ledger.missing ledger.picture ledger.status",
    "why of held": "diagnostics.why ledger.status",
    "stalled": "diagnostics.why ledger.missing ledger.picture ledger.status",
    "estimated": "ledger.picture ledger.status*2",
    "picture": "ledger.picture",
    "picture, half-way": "ledger.picture",
    "picture of items": "ledger.picture",
    "failures of an error": "ledger.errors ledger.failures ledger.status redrives.redrives",
    "failure": "ledger.failure ledger.status redrives.redrives",
    "results": "ledger.results ledger.status",
    "item": "ledger.picture ledger.results ledger.status",
    "scatters": "ledger.list ledger.status",
    "scatter": "scatters.failed_recipients scatters.missing_recipients scatters.replies scatters.status",
    "frames": "ledger.list ledger.status",
    "frame": "frames.status ledger.status",
    "buffers": "buffers.list buffers.status",
    "buffer": "buffers.status ledger.status",
    "directory": "routing.page",
    "topic": "directory.page routing.page",
    "registration": "directory.get",
    "routes": "routing.page",
    "route": "directory.page routing.get",
    "log": "",
    "close": "ledger.status*2",
    "cancel": "ledger.status*2",
    "redrive": "ledger.status redrives.redrive",
    "release": "ledger.failures ledger.status",
    "verify": "ledger.status*2",
    "limits": "ledger.status*2",
    "remove": "ledger.status",
    "redeliver": "ledger.status ledger.targets",
    "redrive what is listed": "ledger.list redrives.redrive",
    "cancel what is listed": "ledger.list ledger.status*4",
    "limit": "buffers.status",
    "delete": "directory.page routing.get",
    "deregister": "directory.get",
}
WITHOUT_TEXTS = {"estimated", "buffers", "buffer", "directory", "log", "limit"}
"""Pages that show no text that callers chose."""
REFUSED = {
    "/batches/{ended}/missing?cursor=x": 400,
    "/batches/{ended}/redrives?cursor=%00": 400,
    "/batches/{ended}/failures?after=x": 400,
    "/batches/{ended}/failures?after=--1": 400,
    "/batches/{ended}/failures?skip=1.5": 400,
    "/batches/{ended}/failures?cursor=nonsense": 400,
    "/batches/{ended}/failures?part=nonsense": 400,
    "/batches/{ended}/failures/x": 400,
    "/batches/{ended}/failures/1e3": 400,
    "/batches/{ended}/failures/12345678901234567890": 400,
    "/batches/{ended}/failures/299": 404,
    "/batches/{ended}/failures/299/body": 404,
    "/batches/{stalled}/events/end": 404,
    "/batches/{keyed}/results?cursor=x": 400,
    "/batches/{keyed}/items/8": 400,
    "/batches/{keyed}/items/x": 400,
    "/batches/{estimated}/items/0": 400,
    "/batches/{keyed}/items?key=nobody": 404,
    "/batches/{keyed}/items": 400,
    "/scatters/123": 404,
    "/scatters/x": 404,
    "/scatters/" + "9" * 5_000: 404,
    "/scatters/{ended}": 404,
    "/scatters/{scatter}?missing=x": 400,
    "/scatters/{scatter}?failed=x": 400,
    "/scatters/{scatter}?replied=x": 400,
    "/scatters?state=x": 400,
    "/frames/123": 404,
    "/frames/x": 404,
    "/frames/{ended}": 404,
    "/frames/{frame}?cursor=x": 400,
    "/buffers/none": 404,
    "/buffers/a%2Fb": 404,
    "/buffers/%3Cscript%3E": 400,
    "/buffers/a%25b": 400,
    "/buffers?cursor=%00": 400,
    "/directory?topic=a%2Fb": 400,
    "/directory?topic=%3Cscript%3E": 400,
    "/directory/c%C3%A4rs": 400,
    "/directory/a%3Fb": 400,
    "/directory/" + "t" * 129: 400,
    "/directory/cars?attribute=region": 400,
    "/directory/cars?attribute=%3Deu": 400,
    "/directory/cars?cursor=%00": 400,
    "/directory/cars/nobody": 404,
    "/directory/cars/a%20b": 400,
    "/directory/a/b/c": 404,
    "/routes/none": 404,
    "/routes/a%2Fb": 404,
    "/routes/r%C3%B6ute": 400,
    "/routes?cursor=%00": 400,
}


@pytest.fixture(scope="module")
def gallery() -> Gallery:
    """Something for every page; its texts are hostile."""
    return Gallery(InMemoryService(), Words(HOSTILE, pattern={"source": [HOSTILE]}))


@pytest.fixture(scope="module")
def calls() -> Calls:
    return Calls()


@pytest.fixture(scope="module")
def browser(gallery: Gallery, calls: Calls) -> TestClient:
    """Looks at a console that is below a path."""
    options = Options(sessions=False, write=True, root="/ui")
    fanin = calls.of(gallery.service.services)
    return TestClient(console(fanin, options, now=gallery.service.clock.now), follow_redirects=False)


@pytest.mark.parametrize("name", CALLS)
def test_a_page_makes_few_calls_and_nothing_in_it_runs(gallery, browser, calls, name):
    calls.clear()
    answer = browser.get("/ui" + (gallery.pages() | gallery.questions())[name])
    assert answer.status_code == 200
    assert " ".join(f"{call}*{n}" if n > 1 else call for call, n in sorted(calls.items())) == CALLS[name]
    assert "<script>alert" not in answer.text
    assert ("<script>alert" in unescape(answer.text)) is (name not in WITHOUT_TEXTS)
    assert "49" not in answer.text.partition("<main")[0]
    assert not re.search(r"\sstyle=|<style|\son\w+=|<script(?![^>]*src=)", answer.text)
    links = re.findall(r'\s(?:href|src|action|data-live)="([^"]*)"', answer.text)
    assert [link for link in links if not link.startswith(("/ui", "#"))] == []


def test_no_page_is_left_out(gallery):
    assert set(CALLS) == {*gallery.pages(), *gallery.questions()}


def test_live_views_bring_the_parts_of_pages_as_they_were_loaded(gallery, browser):
    live = set()
    for name, path in gallery.pages().items():
        page = browser.get(f"/ui{path}").text
        if "data-live" in page and name != "estimated":  # which has no picture
            live.add(name)
            lines = browser.get(live_of(page)).text.splitlines()
            parts = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
            assert parts
            for part, html in parts.items():
                assert html.strip() in page
                assert f'id="{part}"' in page
    lists = {"overview", "batches", "scatters", "frames", "buffers"}
    pictures = {"picture", "picture, half-way", "picture of items"}
    assert live == lists | pictures | {"billion", "held", "stalled", "scatter", "frame", "buffer", "topic"}


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/scatters", "fanin scatter start BODY --topic TOPIC"),
        ("/frames", "fanin frame open ENVELOPES"),
        ("/buffers", "fanin buffer define NAME LIMIT"),
        ("/routes", "fanin route put NAME TOPIC"),
    ],
)
def test_an_empty_list_says_how_one_is_made(browse, path, command):
    assert f"<code>{command}" in browse().get(path).text


@pytest.mark.parametrize("address", REFUSED)
def test_what_is_not_there_is_said(gallery, browser, address):
    ids = {**gallery.batches, "scatter": gallery.scatter, "frame": gallery.frame}
    answer = browser.get(f"/ui{address}".format(**ids))
    assert answer.status_code == REFUSED[address]
    assert "This could not be shown" in answer.text
    assert "<script>" not in answer.text
