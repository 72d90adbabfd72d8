"""docs/how-to/diagnosis.md against the code."""

import re
from pathlib import Path

from fanin.domain.batch import Trouble
from fanin.types import Code, Known

TEXT = (Path(__file__).parents[2] / "docs" / "how-to" / "diagnosis.md").read_text()


def test_it_says_of_every_trouble_and_finding_what_to_do_in_their_order() -> None:
    told = re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)
    assert told == [*Trouble, *Code]


def test_it_names_what_may_be_known_of_a_range() -> None:
    (sentence,) = re.findall(r"says what is known of it: (.+)\.$", TEXT, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == {known.value for known in Known}
