"""What a terminal and a pipe show of the same commands, asked of the API over HTTP."""

import csv
import io
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from fanin.client.https.api import HttpsApi
from fanin.client.https.services import HttpsServices
from fanin.client.https.transport import unsigned
from fanin.client.tracker import Tracker
from fanin.domain.ids import Group
from fanin.testing import InMemoryService
from tests.terminals import begin, in_terminal, piped, served


@pytest.fixture
def service() -> InMemoryService:
    return InMemoryService(start=datetime.now(UTC) - timedelta(minutes=90))


@pytest.fixture
def url(service: InMemoryService) -> Iterator[str]:
    with served(service.services) as url:
        yield url


@pytest.fixture
def api(url: str) -> Tracker:
    """Calls the served API, one call at a time with those of the commands."""
    return Tracker(HttpsServices(HttpsApi(url, sign=unsigned)))


@pytest.fixture
def half(api: Tracker) -> int:
    """A closed batch of 1,200 items: half are done, and two failed."""
    with api.batch(user_key="catalog\t42", idle_ttl=timedelta(hours=2)) as batch:
        group = batch.add(1_200)
    api.ack(group[:598])
    api.fail(group[598:600], "no price\nfor it")
    return batch.id


def records(text: str) -> list[list[str]]:
    """The lines of a pipe as fields."""
    return list(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE))


class TestList:
    def test_a_terminal_gets_a_table_that_leaves_out_empty_columns(self, url, half):
        shown = in_terminal(url, "list", "closed", "--progress")
        stack, head, rule, row = (line for line in shown.text.splitlines() if line.strip())
        assert stack.strip() == f"stack: {url}"
        assert shown.code == 0
        assert head.split() == ["batch", "state", "items", "done", "failed", "opened", "user", "key"]
        assert set(rule.strip()) == {"─"}
        assert row.split() == [str(half), "closed", "1,200", "50%", "2", "1", "h", "ago", "catalog", "42"]

    def test_a_pipe_gets_tabs_all_columns_and_plain_numbers(self, url, half):
        shown = piped(url, "list", "closed")
        head, row = records(shown.stdout)
        found = dict(zip(head, row, strict=True))
        assert (shown.code, shown.stderr) == (0, f"stack: {url}\n")
        assert found["batch"] == str(half)
        assert (found["items"], found["failed"], found["done"], found["held"]) == ("1200", "0+", "", "0")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", found["opened"])
        assert found["user_key"] == r"catalog\t42"

    def test_without_batches_a_pipe_has_the_header_and_the_sentence_is_a_remark(self, url):
        shown = piped(url, "list")
        said = ["no batch is open or closed"]
        assert (len(records(shown.stdout)), shown.stderr.splitlines()[1:]) == (1, said)
        assert in_terminal(url, "list").text.split("\n")[-2].strip() == said[0]


class TestStatus:
    def test_a_terminal_gets_names_and_values(self, url, half):
        shown = in_terminal(url, "status", half, "--exact")
        lines = dict(
            re.split(r"  +", line.strip(), maxsplit=1) for line in shown.text.strip().splitlines()[1:]
        )
        assert lines["done"] == "600 of 1,200 (50.0%)"
        assert "ago" in lines["last activity"]
        assert re.search(r"\(in .*, if nothing happens until then\)", " ".join(shown.text.split()))

    def test_a_pipe_gets_a_line_each_with_the_time_alone(self, url, half):
        found = dict(records(piped(url, "status", half, "--exact").stdout))
        assert (found["done"], found["failed"], found["items"]) == ("600", "2", "1200")
        for name in ("opened", "last_activity", "will_be_orphaned"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", found[name]), name

    def test_a_batch_that_has_ended_is_not_orphaned(self, url, api):
        batch = api.cancel(api.open().batch_id).batch_id
        found = dict(records(piped(url, "status", batch).stdout))
        assert {"last_activity", "will_be_orphaned"} & found.keys() == set()
        assert found["ended"]

    def test_40_columns_are_enough(self, url, half):
        for command in (("status", half), ("list", "closed"), ("failures", half)):
            lines = in_terminal(url, *command, columns=40).text.splitlines()
            assert max(map(len, lines)) <= 40
            assert any("catalog" in line or "no price" in line for line in lines)


def test_why_both_say_the_same(url, half):
    shown = in_terminal(url, "why", half, columns=500)
    alone = piped(url, "why", half)
    assert shown.code == alone.code == 0
    assert f"batch {half} is closed: 600 of 1,200 items are done" in alone.stdout
    assert [line.rstrip() for line in shown.text.splitlines()] == alone.stdout.splitlines()


class TestWatch:
    @pytest.fixture
    def group(self, api: Tracker) -> Group:
        """Eight items of a closed batch, of which two are done."""
        with api.batch(user_key="night") as batch:
            group = batch.add(8)
        api.ack(group[:2])
        return group

    @pytest.fixture
    def small(self, group: Group) -> int:
        return group.batch_id

    def test_a_terminal_gets_a_bar(self, url, api, small, group):
        shown = in_terminal(url, "watch", small, "--every", "0.1", at="2 of 8", then=lambda: api.ack(group))
        assert shown.code == 0
        assert "━" in shown.text
        assert "2 of 8, closed" in shown.text
        assert "8 of 8, complete" in shown.text
        assert shown.stdout.count("\x1b[?25l") == shown.stdout.count("\x1b[?25h") == 1  # the cursor is back

    def test_a_pipe_gets_a_line_for_each_change(self, url, api, small, group):
        process = begin(url, "watch", small, "--every", "0.1")
        first = process.stderr.readline()
        api.ack(group)
        said, rest = process.communicate()
        assert (process.returncode, first.startswith("2 of 8, closed")) == (0, True)
        assert [line.split(", ")[:2] for line in rest.splitlines()] == [["8 of 8", "complete"]]
        assert dict(records(said))["state"] == "complete"

    @pytest.mark.parametrize("term", ["dumb", "unknown"])
    def test_a_terminal_that_cannot_redraw_gets_lines(self, url, api, group, term):
        api.ack(group)
        shown = in_terminal(url, "watch", group.batch_id, TERM=term)
        assert (shown.code, "━" in shown.text, "\x1b" in shown.stdout) == (0, False, False)
        assert "8 of 8, complete" in shown.text

    def test_no_color_means_no_colours(self, url, api, small):
        api.cancel(small)
        assert in_terminal(url, "watch", small).colours
        plain = in_terminal(url, "watch", small, NO_COLOR="1")
        assert [code for code in plain.colours if re.search(r"[34]\d|38;|9\d", code)] == []
        assert "2 of 8, cancelled" in plain.text

    def test_a_narrow_terminal_has_no_room_for_the_bar(self, url, api, small):
        api.cancel(small)
        shown = in_terminal(url, "watch", small, columns=40)
        assert (shown.code, "━" in shown.text) == (1, False)
        assert "2 of 8" in shown.text

    def test_ctrl_c_says_how_to_go_on_and_leaves_the_terminal_in_order(self, url, small):
        shown = in_terminal(url, "watch", small, "--every", "0.2", at="2 of 8")
        assert shown.code == 130
        assert f"stopped watching; to go on: fanin --api-url {url} watch {small}" in shown.text
        assert "Traceback" not in shown.text
        assert shown.stdout.count("\x1b[?25l") == shown.stdout.count("\x1b[?25h") == 1

    def test_several_have_a_line_and_a_row_each(self, url, api, small):
        # Given a watch that has said how far both are
        other = api.open(user_key="day").batch_id
        process = begin(url, "watch", small, other, small, "--every", "0.1")
        said = [process.stderr.readline().split(", ")[:2] for _ in range(2)]
        assert said == [[f"{small}: 2 of 8", "closed"], [f"{other}: 0 of 0", "open"]]
        api.cancel(other)
        api.cancel(small)
        # Then it says so, and lists both
        shown, rest = process.communicate()
        assert process.returncode == 1
        assert f"{other}: 0 of 0, cancelled" in rest
        _, *rows = records(shown)
        assert [row[:2] for row in rows] == [[str(small), "cancelled"], [str(other), "cancelled"]]

    def test_a_user_key_without_live_batches(self, url):
        shown = piped(url, "watch", "--user-key", "nobody")
        assert (shown.code, shown.stderr) == (0, "no batch with this user key is open or closed\n")
