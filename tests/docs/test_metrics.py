"""docs/reference/metrics.md against the code; tests/infra compares it with alarms and dashboard."""

import re
from pathlib import Path

import pytest

from fanin import names
from fanin.entry import observe

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reference" / "metrics.md").read_text()
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in TEXT.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("| ").split(" | ")]]
}
CONSTANTS = {name: value for name, value in vars(names).items() if name.startswith("METRIC_")}
SOURCES = (ROOT / "layers" / "fanin" / "python" / "fanin", ROOT / "functions")
CODE = {
    path: path.read_text()
    for folder in SOURCES
    for path in folder.rglob("*.py")
    if path.name != "names.py" and "console" not in path.parts
}


def test_it_has_every_metric_and_no_other():
    assert sorted(ROWS) == sorted(CONSTANTS.values())


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_metric_is_written_somewhere(constant):
    assert [path for path, code in CODE.items() if re.search(rf"\b{constant}\b", code)]


def test_it_names_the_functions_that_there_are():
    named = {who for _, writers, *_ in ROWS.values() for who in writers.split(", ")}
    assert named - {"consumers in Lambda"} <= {
        path.parent.name for path in ROOT.glob("functions/*/handler.py")
    }


def test_its_namespace_dimension_and_unit_are_those_that_are_written():
    # When a metric is recorded as functions record it
    observe.metrics.clear_metrics()
    observe.gauge(names.METRIC_BUFFER_WAIT, 7)
    ((unit, values),) = [
        (one["Unit"], one["StorageResolution"]) for one in observe.metrics.metric_set.values()
    ]
    observe.metrics.clear_metrics()
    # Then the page has said so
    assert (unit, values) == ("Count", 60)
    assert f"the namespace `{names.METRICS_NAMESPACE}`" in TEXT
    assert f"`{names.CONSUMERS}`" in TEXT
    assert "The unit is *Count* for all of them" in TEXT
