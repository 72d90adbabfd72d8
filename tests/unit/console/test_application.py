import pytest
from starlette.testclient import TestClient

from fanin.console import Options, console
from fanin.console.guard import HEADERS, POLICY
from fanin.errors import BatchGone, ServiceUnavailable, Throttled
from tests.unit.console.calls import Calls

NO_PAGE = "There is no such page."


@pytest.mark.parametrize("path", ["/", "/batches", "/nowhere", "/static/style.css", "/batches?state=bad"])
def test_every_answer_says_what_a_browser_may_do_with_it(browse, path):
    answer = browse().get(path)
    # Then nothing inline, from elsewhere or in a frame is allowed
    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert "unsafe" not in answer.headers["Content-Security-Policy"]


def test_pages_are_never_stored_and_static_files_are_kept(browse):
    # Given a page, and the style sheet that it names
    page = browse().get("/")
    address = page.text.partition('rel="stylesheet" href="')[2].partition('"')[0]
    # Then a cache keeps only the second, whose address changes with its content
    assert page.headers["Cache-Control"] == "no-store"
    assert "immutable" in browse().get(address).headers["Cache-Control"]
    assert "?v=" in address


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/nowhere", 404, NO_PAGE),
        ("/static/../options.py", 404, NO_PAGE),
        ("/static/%2e%2e/options.py", 404, NO_PAGE),
        ("/batches?state=bad", 400, "state is one of open, closed"),
        ("/batches?size=7", 400, "size is one of 25, 50, 75"),
    ],
)
def test_what_cannot_be_shown_is_said_in_the_layout(browse, path, status, text):
    answer = browse().get(path)
    assert answer.status_code == status
    assert text in answer.text
    assert 'aria-label="Parts"' in answer.text


@pytest.mark.parametrize(
    ("error", "status", "again"),
    [
        (Throttled("busy"), 503, 1),
        (ServiceUnavailable("no answer"), 503, 1),
        (BatchGone("was removed"), 410, 0),
    ],
)
def test_what_the_service_refuses_is_said_in_the_layout(service, browse, error, status, again):
    # Given a service that refuses every access to its batches
    def refuse(access: str, when: str) -> None:
        if access.startswith("batches.") and when == "before":
            raise error

    service.on_call = refuse
    answer = browse().get("/batches")
    # Then it says what the service said, and offers to try again what may work later
    assert answer.status_code == status
    assert str(error) in answer.text
    assert answer.text.count("Try again") == again


def test_a_console_may_be_served_below_a_path(service):
    # Given a console below /console, as a function serves it
    app = console(service.services, Options(root="/console", sessions=False))
    browser = TestClient(app)
    # When its first page is asked for
    page = browser.get("/console/")
    # Then all its addresses are below that path, and answered
    assert page.status_code == 200
    addresses = [part.partition('"')[0] for part in page.text.split('href="/')[1:]]
    assert addresses
    assert all(address.startswith("console") for address in addresses)
    assert all(browser.get(f"/{address}").status_code == 200 for address in addresses if "static" in address)
    assert browser.get("/").status_code == 404


def test_a_fault_of_the_console_is_a_page_with_all_headers(service):
    # Given a console that cannot do what it should
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    Calls(service, {"ledger.list": broken})
    app = console(service.services, Options(sessions=False), now=service.clock.now)
    answer = TestClient(app, raise_server_exceptions=False).get("/batches")
    # Then it says so, and is as safe as others
    assert answer.status_code == 500
    assert "The console has failed" in answer.text
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"


def test_an_error_inside_a_batch_leads_back_to_it(service, browse):
    # Given a batch, and addresses of parts that it does not have
    batch_id = service.tracker.open().batch_id
    link = f'href="/batches/{batch_id}"'
    # Then the page about it leads to the batch; one about a batch that is not there does not lead to itself
    assert link in browse().get(f"/batches/{batch_id}/failures/x").text
    assert link in browse(write=True).get(f"/batches/{batch_id}/actions/redrive?range=x").text
    assert "/batches/7" not in browse().get("/batches/7").text
