"""Names on which several parts must agree."""

import ast
from pathlib import Path

import pytest

from fanin import names
from fanin.domain.batch import State

ALL = {name: value for name, value in vars(names).items() if name.isupper()}


def test_the_module_imports_nothing_so_that_the_infrastructure_may_import_it():
    tree = ast.parse(Path(names.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert imported == {"typing"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))


@pytest.mark.parametrize("kind", ["ENV_", "METRIC_", "PIPELINE_OUTPUT_", "ATTRIBUTE_", "MESSAGE_"])
def test_no_two_of_a_kind_have_the_same_value(kind):
    values = [value for name, value in ALL.items() if name.startswith(kind)]

    assert len(values) > 1
    assert len(set(values)) == len(values)


def test_no_two_variables_have_the_same_output():
    outputs = [names.OUTPUT_API_URL, *names.OUTPUTS.values()]
    assert len(set(outputs)) == len(outputs) > 10


def test_every_variable_is_fanin_s_own():
    assert all(value.startswith("FANIN_") for name, value in ALL.items() if name.startswith("ENV_"))


def test_every_end_has_an_event():
    terminal = {state.value for state in State if state.terminal}

    assert set(names.DETAIL_TYPES) == set(names.TERMINAL_STATES) == terminal
    assert len(set(names.DETAIL_TYPES.values())) == len(terminal)
