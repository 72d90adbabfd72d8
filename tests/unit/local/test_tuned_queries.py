"""Which places in the order of sort keys a condition means; answers are compared in ``tests/integration``."""

from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fanin.local import launcher, tuned_queries

TEXT = st.text(alphabet="ab/~é\U0001f600", max_size=3)
HOLDS = {
    "": lambda key, low, high: True,
    "N = V": lambda key, low, high: key == low,
    "N < V": lambda key, low, high: key < low,
    "N <= V": lambda key, low, high: key <= low,
    "N > V": lambda key, low, high: key > low,
    "N >= V": lambda key, low, high: key >= low,
    tuned_queries.BETWEEN: lambda key, low, high: low <= key <= high,
    tuned_queries.BEGINS_WITH: lambda key, low, high: key.startswith(low),
}


def test_each_condition_that_is_understood_is_tested():
    assert HOLDS.keys() == {"", *tuned_queries.SORT_CONDITIONS}


@pytest.mark.parametrize("form", HOLDS)
@settings(max_examples=25)
@given(keys=st.sets(TEXT), operands=st.tuples(TEXT, TEXT).map(sorted))
def test_the_places_of_a_condition_are_those_of_the_keys_that_fulfil_it(form, keys, operands):
    ordered = sorted(keys)
    used = operands if form == tuned_queries.BETWEEN else operands[:1]
    first, last = tuned_queries._range(ordered, form, used)
    assert ordered[first:last] == [key for key in ordered if HOLDS[form](key, operands[0], operands[1])]


def test_an_emulator_without_what_is_patched_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(tuned_queries.importlib, "import_module", lambda name: SimpleNamespace(_query=None))
    with pytest.raises(SystemExit, match="lacks the attribute _set_item"):
        tuned_queries.tune(launcher._require)
