"""The pages of the reference that are made from the code are as the code makes them now."""

import re

import pytest

from docs.site import event_details
from docs.site.event_details import STORIES, Story
from docs.site.generated import FOLDER, PAGES
from fanin import names


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_as_the_code_makes_it(name):
    assert (FOLDER / name).read_text() == PAGES[name](), "run: python -m docs.site"


def test_every_event_that_fanin_sends_has_its_example():
    named = {
        value
        for name, value in vars(names).items()
        if re.match(r"(BATCH_STALLED|GATHER_|INSTANCE_(?!EVENTS))", name)
    }
    followed = set(names.INSTANCE_EVENTS)
    frames = {
        "Frame Completed",
        "Frame Timed Out",
        "Frame Cancelled",
    }  # idle ones time out, and are never orphaned
    ends = {*names.DETAIL_TYPES.values(), *names.EARLY_TYPES.values(), *frames}
    assert {story.detail_type for story in STORIES} == named - followed | ends


def test_a_story_without_its_event_is_an_error():
    def nothing(service):
        service.tracker.open()

    with pytest.raises(LookupError, match="no Batch Completed was sent, but"):
        event_details.sent(Story("Batch Completed", "", "", "", nothing))
