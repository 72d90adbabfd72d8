""""""

import re
from html import unescape

import pytest
from markupsafe import escape

from fanin import Failure
from fanin.console.pages.excerpts import excerpt, excerpts, shown_json
from fanin.console.pages.failures import BODY, CALLS, GROUPS, LOOKED_AT, REDRIVES, ROWS
from fanin.console.rendering import error_key, queue_name
from fanin.domain.failures import KeptMessage, MessageAttribute
from fanin.domain.redrives import OrdinalRange, Redrive
from tests.unit.console.calls import counted
from tests.unit.console.looking import HOSTILE, following, pages_from, text_of

QUEUE = "arn:aws:sqs:eu-west-1:123456789012:rows"


def failed(service, reasons, **more) -> int:
    """A batch in which an item failed for each reason."""
    with service.tracker.batch() as batch:
        group = list(batch.add(len(reasons) + 1))
    failures = [Failure(item, reason, **more) for item, reason in zip(group, reasons, strict=False)]
    for at in range(0, len(failures), 1_000):
        service.services.ledger.mark(failures[at : at + 1_000]).whole()
    return batch.id


def items(page: str) -> list[int]:
    """Ordinals that a page lists, in order."""
    listed = page.partition('id="list-title"')[2]
    return [int(at) for at in re.findall(r'/failures/(\d+)"', listed)]


def all_items(browser, address: str) -> list[int]:
    """Ordinals that all pages list, from an address on."""
    return [at for page in pages_from(browser, address) for at in items(page)]


class TestByError:
    def test_errors_are_listed_with_figures_and_an_example(self, service, browse):
        batch_id = failed(service, ["row 1 is bad", "row 2 is bad", "no stock"], message=KeptMessage("m"))
        shown = text_of(browse().get(f"/batches/{batch_id}/failures").text)
        assert "row &lt;n&gt; is bad 2 row 1 is bad 0 0 s ago all" in shown
        assert "no stock 1 no stock 2 0 s ago all" in shown

    def test_an_error_links_to_its_failures(self, service, browse):
        # Given many failures of one error, and some of another between them
        reasons = ["rare" if at % 50 == 7 else "frequent" for at in range(400)]
        batch_id = failed(service, reasons)
        browser = browse()
        page = browser.get(f"/batches/{batch_id}/failures").text
        address = f"/batches/{batch_id}/failures?error="
        assert f'href="{address}{error_key("rare")}"' in page
        # Then each failure of the error is listed once, and no other
        assert all_items(browser, address + error_key("rare")) == list(range(7, 400, 50))
        assert all_items(browser, address + error_key("frequent")) == [
            at for at in range(400) if at % 50 != 7
        ]
        assert "rare" in text_of(browser.get(address + error_key("rare")).text)

    def test_an_unknown_error_has_no_failures(self, service, browse):
        batch_id = failed(service, ["x"])
        shown = text_of(browse().get(f"/batches/{batch_id}/failures?error=0").text)
        assert "This error was not found." in shown

    def test_less_frequent_errors_are_on_further_pages(self, service, browse):
        letters = "abcdefghijklmnopqrst"
        batch_id = failed(service, [letter for at, letter in enumerate(letters) for _ in range(at + 1)])
        browser = browse()
        page = browser.get(f"/batches/{batch_id}/failures").text
        more = re.search(r'href="([^"]*)">(\d+) less frequent errors', page)
        assert more is not None
        assert int(more[2]) == len(letters) - GROUPS
        rest = browser.get(unescape(more[1])).text
        shown = [re.findall(r'<a class="pattern"[^>]*>(\w)<', text) for text in (page, rest)]
        assert "".join(shown[0] + shown[1]) == letters[::-1]
        assert "less frequent" not in rest

    def test_errors_of_many_failures_are_counted_in_parts(self, service, browse):
        batch_id = failed(service, ["x"] * 2_100)
        browser = browse()
        page = browser.get(f"/batches/{batch_id}/failures").text
        assert "These are the errors of the first failures" in text_of(page)
        further = re.search(r'href="([^"]*)">Errors of the next failures', page)
        assert further is not None
        assert "x 4" in text_of(browser.get(unescape(further[1])).text)


class TestList:
    def test_every_failure_is_listed_once(self, service, browse):
        batch_id = failed(service, ["x"] * (3 * ROWS + 1))
        assert all_items(browse(), f"/batches/{batch_id}/failures") == list(range(3 * ROWS + 1))

    def test_a_failure_is_shown_with_what_is_known_of_it(self, service, browse):
        batch_id = failed(service, ["bad row"], attempts=3, source=QUEUE, message=KeptMessage("m"))
        shown = text_of(browse().get(f"/batches/{batch_id}/failures").text)
        assert "0 bad row 3 rows 0 s ago failed kept" in shown

    def test_what_became_of_a_failure_is_said(self, service, browse):
        # Given a batch that holds failures
        with service.tracker.batch(on_failure="hold") as batch:
            group = list(batch.add(3))
        message = KeptMessage("m")
        service.services.ledger.mark([Failure(group[0], "x", message, source=service.queue())]).whole()
        browser = browse()
        assert "held kept" in text_of(browser.get(f"/batches/{batch.id}/failures").text)
        # When the batch has ended, and it is redriven
        service.tracker.release(batch.id)
        service.tracker.ack(group[1:])
        assert "failed kept" in text_of(browser.get(f"/batches/{batch.id}/failures").text)
        service.services.redrives.redrive(batch.id)
        assert "redriven kept" in text_of(browser.get(f"/batches/{batch.id}/failures").text)
        assert "redriven by" in text_of(browser.get(f"/batches/{batch.id}/failures/0").text)

    def test_a_search_for_an_error_looks_at_so_many_failures_and_goes_on(self, service, browse):
        reasons = ["x"] * (LOOKED_AT * CALLS + 5) + ["rare"]
        batch_id = failed(service, reasons)
        calls = counted(service)
        page = browse().get(f"/batches/{batch_id}/failures?error={error_key('rare')}").text
        assert calls.count("ledger.failures") == CALLS
        assert "None among the 2,000 failures that were looked at." in text_of(page)
        assert all_items(browse(), following(page)) == [len(reasons) - 1]


class TestOne:
    def test_a_failure_has_a_page_with_its_message(self, service, browse):
        attributes = {
            "trace": MessageAttribute("String", "t-1"),
            "raw": MessageAttribute("Binary", b"\x00\xff"),
        }
        message = KeptMessage('{"row": 1}', attributes, group_id="g1")
        batch_id = failed(service, ["bad row"], attempts=3, source=QUEUE, message=message)
        shown = text_of(browse().get(f"/batches/{batch_id}/failures/0").text)
        assert "Reason bad row" in shown
        assert f"Queue {QUEUE}" in shown
        assert "10 characters. Download the body" in shown
        assert "{&#34;row&#34;: 1}" in shown
        assert "Message group g1" in shown
        assert "raw Binary 00ff trace String t-1" in shown

    def test_a_message_that_was_not_kept_is_said_to_be_so(self, service, browse):
        batch_id = failed(service, ["x"])
        shown = text_of(browse().get(f"/batches/{batch_id}/failures/0").text)
        assert "Its message was not kept" in shown
        assert browse().get(f"/batches/{batch_id}/failures/0/body").status_code == 404

    @pytest.mark.parametrize("sign", ["x", "&", "💥", '"'])
    def test_the_beginning_of_a_large_message_is_shown_and_all_of_it_is_a_file(self, service, browse, sign):
        # Given a message of 256 KB, with attributes of as many
        body = sign * (262_144 // len(sign.encode()))
        attributes = {f"a{at}": MessageAttribute("String", sign * 28_000) for at in range(9)}
        batch_id = failed(service, ["x"], message=KeptMessage(body, attributes))
        browser = browse()
        # Then the page is short, and says how much it shows
        answer = browser.get(f"/batches/{batch_id}/failures/0")
        assert len(answer.content) < 100_000
        shown = re.search(r"([\d,]+) characters, of which the first ([\d,]+) are shown", answer.text)
        assert shown is not None
        assert int(shown[1].replace(",", "")) == len(body)
        assert BODY / 6 < int(shown[2].replace(",", "")) <= BODY
        # And the file has every character
        assert browser.get(f"/batches/{batch_id}/failures/0/body").text == body

    def test_the_file_of_a_hostile_body_is_text_that_no_browser_runs(self, service, browse):
        batch_id = failed(service, [HOSTILE], message=KeptMessage(f"<html>{HOSTILE}"))
        answer = browse().get(f"/batches/{batch_id}/failures/0/body")
        assert answer.text == f"<html>{HOSTILE}"
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="batch-{batch_id}-item-0.txt"'
        )

    def test_a_hostile_message_is_shown_as_text(self, service, browse):
        attributes = {"a<b>": MessageAttribute("String.<i>", HOSTILE)}
        message = KeptMessage(HOSTILE, attributes, group_id='"><script>alert(2)</script>')
        page = browse().get(f"/batches/{failed(service, [HOSTILE], message=message)}/failures/0").text
        assert "<script>alert" not in page
        assert "a<b>" not in page


@pytest.mark.parametrize(
    ("queue", "name"),
    [
        (QUEUE, "rows"),
        ("https://sqs.eu-west-1.amazonaws.com/123456789012/rows", "rows"),
        ("https://sqs.eu-west-1.amazonaws.com/123456789012/rows/", "rows"),
        ("rows", "rows"),
        ("", "\u2013"),
        ("x" * 1_024, "x" * 80),
    ],
)
def test_a_queue_is_named(queue, name):
    assert queue_name(queue) == name


def test_a_key_of_an_error_is_short_and_its_own():
    assert error_key("a") == error_key("a") != error_key("b")
    assert len(error_key("\ud800" * 256)) == 16


def html(text: str) -> int:
    return len(str(escape(text)).encode())


@pytest.mark.parametrize(
    ("text", "most", "shown", "size"),
    [
        ("ok", 10, "ok", 2),
        ("x" * 5000, 4096, "x" * 4096, 5000),
        ("ü" * 10, 5, "ü" * 5, 10),  # characters are counted, and none is cut in two
    ],
)
def test_a_long_text_is_cut_and_says_how_long_it_is(text, most, shown, size):
    (one,) = excerpts([text], most=most, room=10_000)
    assert (one.text, one.length, one.cut) == (shown, size, shown != text)


@pytest.mark.parametrize("character", [*"a&\"'<>\n\x0b", "ü", "€", "😀"])
def test_the_room_is_that_of_the_html(character):
    found = excerpts([character * 500] * 7, most=400, room=1000)
    assert sum(html(one.text) for one in found) <= 1000


def test_what_short_texts_do_not_need_is_for_those_that_follow():
    *_, last = excerpts(["x", "y", "z" * 500], most=1000, room=300)
    assert len(last.text) == 298


def test_each_text_has_its_share_whatever_came_before():
    first, second = excerpts(["x" * 500, "y" * 500], most=1000, room=300)
    assert (len(first.text), len(second.text)) == (150, 150)


def test_half_a_surrogate_pair_does_not_break_the_page():
    (one,) = excerpts(["a\ud800b"], most=100, room=100)
    assert one.text == "a\\ud800b"


def test_json_is_shown_with_its_own_characters_or_says_that_it_cannot_be_written():
    assert shown_json({"a": "ü\n"}) == '{"a": "ü\\n"}'
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown_json(deep).startswith("(not shown:")


def test_a_beginning_is_cut_by_characters_and_by_what_it_takes_in_a_page():
    assert excerpt("abc", 9) == ("abc", 3)
    assert not excerpt("abc", 9).cut
    assert excerpt("abcdef", 4) == ("abcd", 6)
    cut = excerpt("&" * 100, 100)
    assert cut.cut
    assert 0 < len(cut.text) <= 40


def ended(service, failures: int, reason: str = "no stock") -> int:
    """A batch that has ended with failures, the first of them without a message."""
    queue = service.queue()
    with service.tracker.batch() as batch:
        group = list(batch.add(failures))
    kept = [Failure(item, reason, KeptMessage("m"), source=queue) for item in group[1:]]
    service.services.ledger.mark([Failure(group[0], reason), *kept]).whole()
    return batch.id


def test_a_redrive_is_shown_with_what_became_of_the_failures(service, browse):
    batch_id = ended(service, 5)
    redrive = service.services.redrives.redrive(batch_id)
    page = browse().get(f"/batches/{batch_id}/redrives").text
    assert "finished all 4 0 1 items 0 \u2013" in text_of(page)
    assert f'<a href="/batches/{redrive.batch_id}">' in page


def test_a_parent_leads_to_its_children_and_they_lead_back(service, browse):
    tracker = service.tracker
    with tracker.batch(user_key="parent") as parent:
        items = list(parent.add(2))
    with tracker.batch(user_key="good", parent_item=items[0]) as good:
        tracker.ack(good.add(1))
    with tracker.batch(user_key="bad", parent_item=items[1]) as bad:
        tracker.fail(bad.add(1)[0], "no price")
    page = text_of(browse().get(f"/batches/{parent.id}/children").text)
    assert page.index("bad") < page.index("good")
    assert f'href="/batches/{parent.id}"' in browse().get(f"/batches/{bad.id}").text
    assert [one.user_key for one in tracker.iter_batches("complete", parent=parent.id)] == ["good", "bad"]


def test_a_selection_is_shown(service, browse):
    batch_id = ended(service, 5, HOSTILE)
    errors = [service.services.ledger.errors(batch_id).errors[0].error]
    service.services.redrives.redrive(batch_id, Redrive(errors=errors, ranges=[OrdinalRange(1, 3)]))
    page = browse().get(f"/batches/{batch_id}/redrives").text
    assert "1 \u2013 2" in text_of(page)
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page


def test_every_redrive_is_on_one_page_when_paging_through(service, browse):
    count = 2 * REDRIVES + 3
    batch_id = ended(service, count + 1)
    for at in range(count):
        service.services.redrives.redrive(batch_id, Redrive(ranges=[OrdinalRange(at + 1, at + 2)]))
    pages = pages_from(browse(), f"/batches/{batch_id}/redrives")
    seen = [at for page in pages for at in re.findall(r'<td class="text">(\d+) \u2013 ', page)]
    assert sorted(map(int, seen)) == list(range(1, count + 1))


def test_a_batch_without_redrives_says_so(service, browse):
    batch_id = ended(service, 2)
    assert "None of its failures was sent again" in browse().get(f"/batches/{batch_id}/redrives").text
