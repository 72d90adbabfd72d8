"""The crawl of examples/crawler on the deployed stack, whose workers are killed."""

import pytest

from examples.crawler.demo import crawl
from examples.crawler.site import reachable


@pytest.mark.usefixtures("local_environment")
@pytest.mark.parametrize("pages", [60, pytest.param(10_000, marks=pytest.mark.soak(long=True))])
def test_exactly_the_pages_that_can_be_reached_are_done_and_the_end_is_told_once(stack, tmp_path, pages):
    crawled = crawl(stack, tmp_path, pages, print)

    wanted = reachable(pages)
    assert len(wanted) < pages
    assert crawled.visited == wanted
    batch = crawled.batch
    assert (batch.state, batch.items, batch.keyed, batch.failed) == ("complete", *[len(wanted)] * 2, 0)
    assert len(crawled.events) == 1
