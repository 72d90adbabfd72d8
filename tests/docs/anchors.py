"""The anchors of a page."""

import re


def anchors(text: str) -> set[str]:
    """The anchors that GitHub and the site give to the headings of a page."""
    return {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    }
