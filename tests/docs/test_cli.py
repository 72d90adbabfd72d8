"""docs/reference/cli.md says what the command line says."""

import re
from pathlib import Path

import pytest

from fanin.cli.exits import MEANINGS
from fanin.cli.reference import reference

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()


def test_the_page_is_what_help_prints():
    assert reference() == PAGE, "run: python -m fanin.cli.reference > docs/reference/cli.md"


@pytest.mark.parametrize("code", MEANINGS)
def test_exit_codes_are_documented(code):
    assert re.search(rf"^ *{code.value}  {re.escape(MEANINGS[code])}$", PAGE, re.MULTILINE)


def test_usage_is_what_is_typed():
    usages = re.findall(r"^Usage: (fanin.*?)(?: \[| \{|$)", PAGE, re.MULTILINE)
    assert usages == re.findall(r"^## (fanin.*)$", PAGE, re.MULTILINE)
