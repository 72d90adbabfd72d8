"""python -m bench: what it runs where, what it prints, and its exit code."""

import ast
import json
import os
from functools import partial
from pathlib import Path

import pytest

from bench import __main__ as bench
from bench.figures import Figure
from tests.unit.bench.where import where_measured

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("measured", "code"), [(1, 0), (2, 1)])
def test_the_bench_fails_where_a_figure_falls_short(monkeypatch, capsys, measured, code):
    # Given
    monkeypatch.setattr("sys.argv", ["bench", "--json", "ranges"])
    monkeypatch.setattr(bench, "measure", lambda groups: [Figure(*groups, measured, at_most=1)])
    # When
    ended = bench.main()
    # Then
    assert ended == code
    (figure,) = json.loads(capsys.readouterr().out)["figures"]
    assert (figure["figure"], figure["measured"], figure["ok"]) == ("ranges", measured, not code)


def test_what_falls_short_is_named_below_the_table(monkeypatch, capsys):
    # Given one figure that holds, and one that does not, among many whose beginning a log may have lost
    monkeypatch.setattr("sys.argv", ["bench", "ranges"])
    monkeypatch.setattr(
        bench, "measure", lambda groups: [Figure("a", 1, at_most=1), Figure("b", 2, at_most=1)]
    )
    # When
    ended = bench.main()
    # Then
    assert ended == 1
    assert capsys.readouterr().out.splitlines()[-1] == "missed: b: 2, must be ≤ 1"


def test_all_that_is_counted_is_measured_and_the_bench_ends_where_that_fails(monkeypatch):
    measures = [partial(list, [Figure(name, 1)]) for name in ("a", "b")]
    monkeypatch.setattr(bench, "COUNTED", {"w": measures})
    assert [figure.name for figure in bench.measure(["w"])] == ["a", "b"]
    measures.append(partial(int, "nothing"))
    with pytest.raises(ValueError, match="nothing"):
        bench.measure(["w"])


def test_what_is_timed_has_a_process_of_its_own_and_of_each_figure_the_worst_counts(monkeypatch):
    # Given
    monkeypatch.setattr(bench, "COUNTED", {})
    monkeypatch.setattr(bench, "TIMED", {"w": [where_measured, where_measured]})
    # When
    figures = {figure.name: figure.measured for figure in bench.measure(["w"])}
    # Then
    worst = figures.pop("highest")
    assert len(figures) == 2
    assert f"process {os.getpid()}" not in figures
    assert worst == max(int(name.removeprefix("process ")) for name in figures)


def test_every_group_is_documented_in_the_page_of_the_bench():
    page = (ROOT / "docs" / "reference" / "bench.md").read_text()
    for group in bench.GROUPS:
        assert f"| {group} |" in page


CLOCKS = {"SystemClock", "time", "datetime", "monotonic", "perf_counter", "process_time"}


def names_in(source):
    """What a module imports, and what it names."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (alias.name for alias in aliases)
                yield from (alias.asname for alias in aliases if alias.asname)


def test_no_counted_measurement_reads_the_clock_of_the_machine():
    # Given what measures counts, and all that it uses of the bench; what is timed may read a clock
    timed = {measurement.__module__ for measures in bench.TIMED.values() for measurement in measures}
    counted = {measurement.__module__ for measures in bench.COUNTED.values() for measurement in measures}
    left, seen = set(counted), set()
    while left:
        module = left.pop()
        seen.add(module)
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        used = {
            node.module
            for node in ast.walk(ast.parse(source))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bench.")
        }
        left |= used - seen
        # When their names are read, then none of them is a clock; a program in a text is run by what is timed
        assert not CLOCKS & set(names_in(source)), module
    assert {"bench.dynamodb", "bench.world", "bench.deployment"} <= seen
    assert timed - seen
