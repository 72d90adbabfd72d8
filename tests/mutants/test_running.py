"""A mutant takes the place of its module, whether that is a file or a package."""

import subprocess
import sys

import pytest

from tests.mutants.mutate import mutants
from tests.mutants.running import PACKAGE, ROOT, Mutated


@pytest.mark.parametrize(
    ("module", "name"),
    [("domain/tree.py", "fanin.domain.tree"), ("app/ports/__init__.py", "fanin.app.ports")],
)
def test_a_mutant_is_imported_under_the_name_of_its_module(module, name):
    path = PACKAGE / module
    mutant = next(mutants(path.read_text(), str(path)))
    change = Mutated(path, mutant.code)

    spec = change.find_spec(name)

    assert change.find_spec("fanin.app.fresh") is None
    assert spec is not None
    assert spec.loader is change
    assert bool(spec.submodule_search_locations) is (path.name == "__init__.py")
    assert change.get_code(name) is mutant.code


def test_code_that_imports_a_package_gets_the_mutant():
    script = """
import sys
from tests.mutants.mutate import mutants
from tests.mutants.running import PACKAGE, Mutated
path = PACKAGE / "app/ports/__init__.py"
(mutant,) = (m for m in mutants(path.read_text(), str(path)) if m.name == "Defaults: 7 * 86400 → 8 * 86400")
sys.meta_path.insert(0, Mutated(path, mutant.code))
from fanin.app.ports import Defaults
from fanin.app.ports.batches import Activity
print(Defaults().closed_idle_ttl)
"""
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)

    assert told.stdout.strip() == str(8 * 86_400)
