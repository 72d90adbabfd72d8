"""Lines of JSON, without Spark around them."""

import pytest

from fanin.spark.inputs.json_lines import objects


@pytest.mark.parametrize(("line", "rows"), [(" \t\r", 0), ("\u00a0", 1), ("\u2028 ", 1), ("\v", 1)])
def test_only_a_line_that_json_takes_for_blank_is_no_row(line, rows):
    found = list(objects(line.encode(), "utf-8", {"item": 0}, whole=False, exact=True))
    assert len(found) == rows
    assert all("not an object of JSON" in str(one.problem) for one in found)
