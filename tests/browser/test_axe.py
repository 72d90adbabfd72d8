"""axe finds what it should on a page with a strict policy, and nothing on one that is accessible."""

from collections.abc import Iterator

import pytest

from tests.browser.axe import accessible
from tests.browser.example import example
from tests.browser.serving import served
from tests.browser.views import without_javascript


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with served(example) as url:
        yield url


@pytest.mark.parametrize(
    ("path", "findings"),
    [
        ("unlabelled", ["label (critical", "input", "color-contrast (serious", 'p: <p class="pale">']),
        ("small", ["target-size"]),
    ],
)
def test_what_is_not_accessible_is_found(page, site, path, findings):
    page.goto(f"{site}/{path}")
    with pytest.raises(AssertionError) as failure:
        accessible(page)
    assert [finding for finding in findings if finding not in str(failure.value)] == [], failure.value


@without_javascript
def test_axe_says_that_it_needs_javascript(page, site, javascript):
    page.goto(f"{site}/sound")
    assert page.locator("#script").text_content() == ""
    with pytest.raises(ValueError, match="needs JavaScript"):
        accessible(page)
