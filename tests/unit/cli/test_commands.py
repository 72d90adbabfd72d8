"""Commands by name: each is imported when it is called, and a name that is misspelt finds its neighbours."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fanin.cli.commands
from fanin.cli.commands import MODULES, SECTIONS, Commands


@pytest.mark.parametrize("name", MODULES)
def test_each_is_declared_where_the_table_says(name):
    commands = Commands()
    assert commands[name].name == name
    assert commands[name] is commands[name]


def test_no_module_declares_a_command_that_the_table_does_not_have():
    folder = Path(fanin.cli.commands.__file__).parent
    declaring = {
        file.stem
        for file in folder.glob("*.py")
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(decorator).startswith("app.command") for decorator in node.decorator_list)
    }
    assert declaring <= set(MODULES.values())


def test_only_the_module_that_is_called_is_loaded():
    code = (
        "import sys\nfrom fanin.cli.commands import Commands\nCommands()['why']\n"
        "print([m for m in ('fanin.cli.reading', 'fanin.cli.fanout', 'fanin.cli.spark') if m in sys.modules])"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said == "['fanin.cli.reading']\n"


def test_the_help_has_all_in_their_order():
    assert list(Commands()) == list(MODULES)
    assert len(Commands()) == len(MODULES)


def test_the_help_has_sections_of_whole_sentences(run):
    shown = run("-h").stdout
    assert [title for title in SECTIONS if f"\n{title}:\n" in shown] == list(SECTIONS)
    assert not re.search(r"[a-z]\.\.\.", shown + run("scatter", "-h").stdout)


@pytest.mark.parametrize("words", [(), ("status",), ("local",), ("local", "up")], ids=" ".join)
def test_help_has_a_short_name_everywhere(run, words):
    result = run(*words, "-h")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "-h, --help" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("statsu", "1"), "No such command 'statsu'. Did you mean 'status'"),
        (("local", "ups"), "No such command 'ups'. Did you mean 'up'"),
        (("list", "--progres"), "--progress"),
        (("list", "opn"), "'state': 'opn' is not one of"),
    ],
)
def test_what_is_misspelt_is_answered_with_the_nearest(run, words, said):
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
