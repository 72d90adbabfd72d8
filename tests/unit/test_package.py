"""What the package shows: every name is declared once, and needs no extra."""

import subprocess
import sys

import pytest

import fanin
import fanin.spark
import fanin.types

SHOWN = (fanin, fanin.types)

EXTRAS = ("aws_lambda_powertools", "fastjsonschema", "jinja2", "numpy", "pandas", "pyarrow", "pyspark")
EXTRAS += ("py4j", "rich", "typer")

IMPORT_ALL = f"""\
import sys
for name in {EXTRAS}:
    sys.modules[name] = None  # what Python makes of a package that is not installed
import fanin, fanin.types
for module in (fanin, fanin.types):
    for name in module.__all__:
        getattr(module, name)
print(len(fanin.__all__))
"""


@pytest.mark.parametrize("module", SHOWN, ids=lambda module: module.__name__)
def test_a_module_shows_what_its_stub_declares(module):
    """Type checkers see that each name is in its home: here it comes from there."""
    assert len(module.__all__) > 20
    assert module.__all__ == sorted(set(module.__all__))
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name).__name__ == name


def test_no_name_is_shown_twice():
    assert not set(fanin.__all__) & set(fanin.types.__all__)


def test_all_names_import_without_any_extra():
    done = subprocess.run([sys.executable, "-c", IMPORT_ALL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(fanin.__all__)}\n"), done.stderr


@pytest.mark.parametrize("module", [*SHOWN, fanin.spark], ids=lambda module: module.__name__)
def test_other_names_are_refused(module):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Nothing'"):
        _ = module.Nothing


def test_importing_the_package_imports_nothing_of_it():
    code = "import sys, fanin; print([m for m in sys.modules if m.startswith('fanin.') or m == 'boto3'])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "['fanin.lazy']\n"
