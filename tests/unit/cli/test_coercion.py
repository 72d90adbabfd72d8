"""Values that need no library are converted without pydantic, and all others as Typer converts them."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from fanin.cli.main import without_pydantic

KINDS = """
import sys
from enum import StrEnum
from typing import Annotated
import typer
from fanin.cli.main import without_pydantic

class Colour(StrEnum):
    RED = "red"

app = typer.Typer()

@app.command()
def show(
    name: str,
    parsed: Annotated[int, typer.Option(parser=lambda text: len(str(text).strip("0")))] = 0,
    many: Annotated[list[int] | None, typer.Option()] = None,
    absent: str | None = None,
    number: int = 1,
    colour: Colour = Colour.RED,
):
    print(repr((name, parsed, list(many or ()), absent, number, colour.value)))

if sys.argv.pop(1) == "plain":
    without_pydantic()
    without_pydantic()
app(standalone_mode=False)
print("pydantic" in sys.modules)
"""


def said(way: str, *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", KINDS, way, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "words",
    [
        ("zürich",),
        ("a", "--parsed", "four", "--absent", ""),
        ("a", "--many", "1", "--many", "2", "--number", "7", "--colour", "red"),
    ],
    ids=" ".join,
)
def test_each_kind_of_value_is_what_typer_makes_of_it(words):
    assert said("plain", *words)[0] == said("as typer does", *words)[0]


def test_a_parser_says_what_was_expected():
    app = typer.Typer()

    def refuse(text: str) -> int:
        raise typer.BadParameter(f"{text!r} is not a thing")

    @app.command()
    def show(thing: int = typer.Argument(parser=refuse)) -> None:
        print(thing)  # noqa: T201

    without_pydantic()
    result = CliRunner().invoke(app, ["x"])
    assert (result.exit_code, "'x' is not a thing" in result.stderr) == (2, True)
