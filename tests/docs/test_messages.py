"""docs/reference/messages.md against the code."""

import re
from pathlib import Path

from fanin import names

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "messages.md").read_text()
MESSAGES = {value for name, value in vars(names).items() if name.startswith("MESSAGE_")}


def first_cells(text: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def test_it_has_every_attribute_and_every_tag() -> None:
    attributes = {
        value
        for name, value in vars(names).items()
        if name == "ITEM_ATTRIBUTE" or name.startswith("ATTRIBUTE_")
    }
    tags = {value for name, value in vars(names).items() if name.endswith("_TAG")}
    assert sorted(first_cells(TEXT)) == sorted(attributes | tags)


def test_it_has_the_types_of_messages_that_frames_send() -> None:
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{names.ATTRIBUTE_TYPE}` |")]
    assert set(re.findall(r"`([A-Z][\w ]+)`", row)) == MESSAGES
