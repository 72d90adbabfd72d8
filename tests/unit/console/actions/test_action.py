"""What an action says and does, and how far one press goes."""

from __future__ import annotations

from starlette.datastructures import ImmutableMultiDict

from fanin.console.actions.action import PAGES, TIME_MS, Press, pages


def test_a_field_is_read_without_blanks_and_is_empty_if_it_was_not_sent(service) -> None:
    press = Press(service.services, service.clock.now, ImmutableMultiDict([("queue", "  work ")]))
    assert (press.text("queue"), press.text("limit")) == ("work", "")


def test_it_is_bounded_in_pages() -> None:
    assert list(pages(lambda: 0)) == list(range(PAGES))


def test_it_is_bounded_in_time_but_reads_one_page_at_least() -> None:
    # Given a service that needs so long for each page
    for each, count in ((TIME_MS * 2, 1), (TIME_MS // 2, 2)):
        clock = [0]
        read = 0
        for _ in pages(lambda clock=clock: clock[0]):  # type: ignore[misc]
            clock[0] += each
            read += 1
        assert read == count
