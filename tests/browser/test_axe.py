"""axe finds what it should on a page with a strict policy, and nothing on one that is accessible."""

from collections.abc import Iterator

import pytest

from tests.browser.axe import accessible
from tests.browser.example import example
from tests.browser.serving import served
from tests.browser.views import every_scheme, every_width, reduced_motion, without_javascript


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
    assert page.locator("#scheme").text_content() == ""
    with pytest.raises(ValueError, match="needs JavaScript"):
        accessible(page)


@every_width
def test_a_page_is_as_wide_as_the_test_says(page, site, width):
    page.goto(f"{site}/sound")
    assert page.locator("#scheme").text_content() == f"{width} light moving"
    accessible(page)


@every_scheme
@reduced_motion
def test_a_page_is_seen_in_its_scheme_and_without_motion(page, site, motion, scheme):
    page.goto(f"{site}/sound")
    assert page.locator("#scheme").text_content() == f"1280 {scheme} still"
