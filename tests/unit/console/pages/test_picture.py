"""The page of the bit picture: what it reads, shows and links, down to single items."""

import json
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

import pytest
from starlette.testclient import TestClient

from fanin.app.ports.words import ItemClaim, WordKey
from fanin.console import Options, console
from fanin.domain.batch import Batch, Mode, OnFailure, OpenBatch
from fanin.domain.ids import Group
from fanin.domain.marks import ItemRange
from fanin.testing import InMemoryService
from tests.unit.console.calls import Calls

BILLION = 10**9
CHECKERBOARD = sum(1 << y * 8 + x for y in range(8) for x in range(8) if (x + y) % 2)
Opened = Callable[..., tuple[Batch, Group]]


@pytest.fixture
def opened(service: InMemoryService) -> Opened:
    """Opens a batch with some items."""

    def make(count: int, **options: object) -> tuple[Batch, Group]:
        ledger = service.services.ledger
        batch = ledger.open(OpenBatch(**options))
        return batch, ledger.add(batch.batch_id, count)

    return make


@pytest.fixture
def words(service: InMemoryService) -> Callable[[int, int, int, int], None]:
    """Gives a word of a batch a value."""
    store = service._runtime.memory.words

    def put(batch_id: int, level: int, number: int, word: int) -> None:
        store._words[WordKey(batch_id, level, number)] = word

    return put


def squares(html: str) -> list[ET.Element]:
    """The squares of the picture of a page."""
    found = re.search(r'<div id="picture-drawn">(.*?)</div>', html, re.DOTALL)
    assert found is not None
    svg = ET.fromstring(found[1].strip())
    return [part for part in svg if part.tag in {"a", "g"}]


def title(square: ET.Element) -> str:
    return square.findtext("title") or ""


def marks(square: ET.Element) -> int:
    """How many marks of a square are filled."""
    path = square.find("path[@class='done']")
    assert path is not None
    found = re.findall(r"M(\d) (\d)H(\d)V(\d)H\d", path.get("d", ""))
    return sum((int(right) - int(x)) * (int(bottom) - int(y)) for x, y, right, bottom in found)


def rows(html: str) -> list[list[str]]:
    """The text of the table's cells."""
    table = html[html.index('<div id="picture-table">') :]
    return [
        [
            re.sub(r"<[^>]+>", "", cell).strip()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)[1:]
    ]


def read(service: InMemoryService) -> int:
    """How many rows were read so far."""
    return service._runtime.memory.accesses.reads.total()


class TestReading:
    def test_a_billion_items_take_one_call_and_66_rows_on_each_level(self, service, browse, opened):
        # Given a billion items, of which some are done and some have failed
        batch, group = opened(BILLION)
        service.services.ledger.mark([ItemRange(group.prefix, 1_000, 600_000_000)]).whole()
        service.tracker.fail(group[3], "no price")
        counted, browser = Calls(service), browse()

        address: str | None = f"/batches/{batch.batch_id}/picture"
        for level in (4, 3, 2, 1, 0):
            before = read(service)
            counted.clear()
            # When somebody zooms in, square by square
            assert address is not None
            page = browser.get(address)
            # Then each page makes one call, which reads few rows
            assert page.status_code == 200
            assert counted == {"ledger.picture": 1}
            assert read(service) - before <= 66
            assert len(page.content) < 100_000
            address = squares(page.text)[0].get("href")
            assert (address is None) == (level == 0)

    def test_a_complete_batch_takes_the_row_of_the_batch(self, service, browse, opened):
        batch, group = opened(5_000)
        service.tracker.ack(list(group))
        service.services.ledger.close(batch.batch_id)
        before = read(service)

        page = browse().get(f"/batches/{batch.batch_id}/picture").text

        assert read(service) - before == 1
        assert [marks(square) for square in squares(page)[:2]] == [64, 15]
        assert "data-live" not in page

    def test_an_estimated_batch_has_no_picture_and_says_so(self, browse, opened):
        batch, _ = opened(5_000, mode=Mode.ESTIMATED)

        page = browse().get(f"/batches/{batch.batch_id}/picture")

        assert page.status_code == 200
        assert "so it has no picture" in page.text

    def test_an_empty_batch_says_so(self, service, browse):
        batch = service.services.ledger.open(OpenBatch())

        assert "This batch has no items yet." in browse().get(f"/batches/{batch.batch_id}/picture").text
        service.services.ledger.cancel(batch.batch_id)
        assert "This batch has no items." in browse().get(f"/batches/{batch.batch_id}/picture").text

    @pytest.mark.parametrize(
        ("query", "said"),
        [
            ("level=7", "level must be a whole number"),
            ("level=0&number=99", "number of a word of level 0 must be"),
            ("level=one", "level is a whole number"),
            ("number=" + "9" * 5_000, "number is a whole number"),
        ],
    )
    def test_a_node_that_does_not_exist_is_refused(self, browse, opened, query, said):
        batch, _ = opened(100)

        page = browse().get(f"/batches/{batch.batch_id}/picture?{query}")

        assert page.status_code == 400
        assert said in page.text


def test_size_pages_are_small_whatever_the_words_are(browse, opened, words):
    # Given a huge batch, of which a part has 64 words of the longest paths
    batch, _ = opened(4_000_000_000, user_key="k" * 200)
    for number in range(64):
        words(batch.batch_id, 3, number, CHECKERBOARD)

    page = browse().get(f"/batches/{batch.batch_id}/picture?level=4").text

    svg = re.search(r'<svg class="bits" viewBox="-0.*?</svg>', page, re.DOTALL)
    assert svg is not None
    assert len(svg[0]) < 60_000
    assert len(page) < 100_000


class TestSquares:
    def test_are_64_and_those_with_parts_have_link_title_and_place_in_the_order_of_tab(self, browse, opened):
        batch, _ = opened(64 * 20)

        found = squares(browse().get(f"/batches/{batch.batch_id}/picture").text)

        assert len(found) == 64
        for at, square in enumerate(found[:20]):
            assert square.get("href") == f"/batches/{batch.batch_id}/picture?level=0&number={at}"
            assert square.get("tabindex") == "0"
            assert title(square).startswith(f"Items {at * 64:,} to {at * 64 + 63:,}: ")
        for square in found[20:]:
            assert (square.get("href"), square.get("tabindex"), title(square)) == (None, None, "")
            assert square.get("aria-hidden") == "true"

    def test_agree_with_the_table(self, service, browse, opened):
        batch, group = opened(1_000)
        service.tracker.ack([group[at] for at in range(0, 1_000, 3)])
        service.tracker.fail(group[70], "no price")

        page = browse().get(f"/batches/{batch.batch_id}/picture").text

        table = rows(page)
        found = squares(page)[: len(table)]
        assert [int(row[2]) for row in table] == [marks(square) for square in found]
        assert table[1] == ["64", "127", "22", "34.4 %", "1", "Zoom in"]
        assert title(found[1]) == "Items 64 to 127: 34.4 % done; 1 failed"
        assert [bool(square.find("path[@class='corner']").get("d")) for square in found] == [
            at == 1 for at in range(16)
        ]

    def test_that_were_not_read_are_hatched_and_say_so(self, browse, opened):
        # Given a node four levels below the root, so that rows are left for 61 of its 64 words
        batch, _ = opened(BILLION)

        page = browse().get(f"/batches/{batch.batch_id}/picture?level=1&number=0").text

        unread = [square for square in squares(page) if square.get("class") == "cell unread"]
        assert len(unread) == 3
        assert {title(square).partition(": ")[2] for square in unread} == {"not read"}
        assert [row[2] for row in rows(page)].count("not read") == 3
        assert "Not read. Zoom in to see it." in page

    def test_of_level_0_are_items_with_their_states(self, service, browse, opened):
        # Given a done, a failed, a held, a leased and a pending item
        batch, group = opened(5, on_failure=OnFailure.HOLD)
        ledger, now = service.services.ledger, service.clock.now() // 1000
        service.tracker.ack(group[0])
        service.tracker.fail(group[1], "no price")
        ledger.release(batch.batch_id)
        service.tracker.fail(group[2], "no price")
        service._runtime.memory.words.claim(
            [ItemClaim(WordKey(batch.batch_id, 0, 0), 3, now, now + 60, batch.expires_at)]
        )

        page = browse().get(f"/batches/{batch.batch_id}/picture").text

        states = ["done", "failed", "held", "leased", "pending"]
        found = squares(page)
        assert [square.get("class") for square in found[:6]] == [f"item {s}" for s in states] + ["item none"]
        assert {square.get("tabindex") for square in found[:5]} == {"-1"}
        assert [row[:2] for row in rows(page)] == [[str(at), state] for at, state in enumerate(states)]
        assert rows(page)[3][2] == "2026-11-23 09:01:00 UTC"
        assert all(row[3] in {group[at] for at in range(5)} or ":" in row[3] for row in rows(page))

    def test_lead_back_to_the_root(self, browse, opened):
        batch, _ = opened(64**3)

        page = browse().get(f"/batches/{batch.batch_id}/picture?level=0&number=65").text

        root, above = f"/batches/{batch.batch_id}/picture", "picture?level=1&amp;number=1"
        assert f'<a href="{root}">All 262,144 items</a>' in page
        assert f'<a href="/batches/{batch.batch_id}/{above}">Items 4,096 to 8,191</a>' in page
        assert '<span aria-current="page">Items 4,160 to 4,223</span>' in page
        assert f'data-up="/batches/{batch.batch_id}/{above}"' in page
        assert 'rel="up"' in page


class TestLive:
    def follow(self, service: InMemoryService, address: str) -> Iterator[dict[str, str]]:
        options = Options(sessions=False)
        browser = TestClient(console(service.services, options, now=service.clock.now))
        for line in browser.get(address).text.splitlines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))

    def test_changes_attributes_and_texts_alone(self, service, opened):
        """The structure stays, so that what has the focus keeps it, also when the batch grows."""

        def structure(html: str) -> list[tuple[str, int]]:
            svg = re.search(r"<svg class=\"bits\" viewBox=\"-0.*?</svg>", html, re.DOTALL)
            assert svg is not None
            return [(part.tag, len(part)) for part in ET.fromstring(svg[0]).iter()]

        batch, group = opened(1_000)
        address = f"/live/batches/{batch.batch_id}/picture?level=1"
        (before,) = self.follow(service, address)
        service.tracker.ack(list(group[0:200]))
        service.tracker.fail(group[300], "no price")
        service.services.ledger.add(batch.batch_id, 10_000)

        (after,) = self.follow(service, address)

        assert before["picture-drawn"] != after["picture-drawn"]
        assert structure(before["picture-drawn"]) == structure(after["picture-drawn"])

    def test_follows_the_root_of_a_batch_that_grows(self, service, opened):
        batch, _ = opened(10)
        address = f"/live/batches/{batch.batch_id}/picture"
        (before,) = self.follow(service, address)
        service.services.ledger.add(batch.batch_id, 5_000)

        (after,) = self.follow(service, address)

        assert "Item 0: pending" in before["picture-drawn"]
        assert "Items 0 to 4,095" in after["picture-drawn"]

    def test_is_over_when_the_batch_has_ended(self, service, opened):
        batch, group = opened(100)
        address = f"/live/batches/{batch.batch_id}/picture"

        first, again = list(self.follow(service, address)), list(self.follow(service, address))
        service.tracker.ack(group[3])
        moved = list(self.follow(service, address))
        service.services.ledger.cancel(batch.batch_id)
        ended = list(self.follow(service, address))

        assert first == again != moved != ended
        assert [{} in one for one in (first, moved, ended)] == [False, False, True]
