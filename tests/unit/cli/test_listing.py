"""Tables, also on narrow terminals."""

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from fanin.cli.listing import FactSheet, Table, Value, field

ITEM = "245218792084582:00000000-0000-8000-80a1-12eed0d11df3:14"


def shown(renderable, width: int) -> list[str]:
    screen = io.StringIO()
    Console(file=screen, width=width).print(renderable, markup=False)
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def failures() -> Table:
    made = Table("ordinal", "item", "state", "kept", "reason", right=("ordinal",))
    made.add_row("14", ITEM, "failed", "", "no such customer [b]")
    made.add_row("15", ITEM, "failed", "", "no price")
    return made


def test_on_a_phone_each_value_has_a_line():
    lines = shown(failures(), 40)

    assert lines[0] == "ordinal  14"
    assert lines[-3:] == ["state    failed", "reason   no price", ""]
    assert "".join(line[9:] for line in lines[1:3]) == ITEM
    assert max(map(len, lines)) <= 40


def test_on_a_screen_each_item_has_a_row():
    head, _, first, *_ = (line for line in shown(failures(), 120) if line)

    assert head.split() == ["ordinal", "item", "state", "reason"]
    assert first.split(maxsplit=3) == ["14", ITEM, "failed", "no such customer [b]"]


def test_ids_are_never_folded_at_80_columns():
    made = failures()
    made.add_row("16", ITEM, "failed", "", "a reason of several words that is long enough to be folded")

    assert sum(ITEM in line for line in shown(made, 80)) == 3


def test_what_turns_the_direction_of_a_text_is_escaped():
    assert field("invoice\u202egnp.exe") == "invoice\\u202egnp.exe"
    assert shown(FactSheet([("key", "a\u2066b")]), 40) == ["key  a\\u2066b"]


def test_a_column_that_is_empty_in_every_row_is_left_out_and_without_rows_none_is():
    assert "kept" not in " ".join(shown(failures(), 120))
    assert "kept" in " ".join(shown(Table("item", "kept"), 120))


def test_long_values_of_facts_are_folded_not_cut():
    lines = shown(FactSheet([("queue", "x" * 100)]), 40)

    assert "".join(line[7:] for line in lines) == "x" * 100


CELLS = st.one_of(
    st.text(st.characters(codec=None), max_size=20),  # lone surrogates among them
    st.integers(),
    st.none(),
    st.text(max_size=5).map(lambda text: Value("shown", text)),
)


def unescaped(field: str) -> str:
    """What a program makes of a field: the escapes of C, which Python knows, too."""
    return re.sub(
        r"\\(\\|t|n|r|x[0-9a-f]{2}|u[0-9a-f]{4})",
        lambda found: (
            {"\\": "\\", "t": "\t", "n": "\n", "r": "\r"}.get(found[1]) or chr(int(found[1][1:], 16))
        ),
        field,
    )


@settings(max_examples=25)
@given(st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=5))
def test_in_a_pipe_a_record_is_a_line_and_its_columns_stay(rows):
    made = Table("a", "b b", "c")
    for row in rows:
        made.add_row(*row)
    text = "".join(f"{line}\n" for line in made.lines())
    # Then it can be written, is as many lines for whatever splits it, and each field comes back as it was
    assert text.encode().decode() == text
    head, *lines = text.splitlines()
    assert text.count("\n") == len(lines) + 1 == len(rows) + 1
    assert head == "a\tb_b\tc"
    for row, line in zip(rows, lines, strict=True):
        plain = [cell.plain if isinstance(cell, Value) else "" if cell is None else str(cell) for cell in row]
        assert [unescaped(field) for field in line.split("\t")] == plain


@given(st.text(st.characters(codec=None), max_size=30))
def test_facts_are_a_line_each_too(value):
    lines = list(FactSheet([("user key", value), ("items", 1)]).lines())
    assert lines[-1] == "items\t1"
    assert lines[:-1] == ([f"user_key\t{field(value)}"] if value else [])
    assert all(line.encode() and len(line.splitlines()) == 1 for line in lines)


@given(st.text(st.characters(codec=None), max_size=30))
def test_a_terminal_obeys_no_character_of_a_value(value):
    text = "\n".join(shown(FactSheet([("a", value)]), 80))
    assert text.encode().decode() == text
    assert not set(text) & {*map(chr, range(9)), "\x1b", "\x07", "\x7f", "\x9b"}


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a\tb\nc\r", r"a\tb\nc\r"),
        ("back\\slash", r"back\\slash"),
        ("\x1b[31mred\x7f", r"\x1b[31mred\x7f"),
        ("line\u2028end", r"line\u2028end"),
        ("half \ud83d", r"half \ud83d"),
        (Value("40 or more", "40+"), "40+"),
        (None, ""),
        (1_000, "1000"),
    ],
)
def test_escapes(value, written):
    assert field(value) == written


def test_a_terminal_gets_spaces_for_a_tab():
    assert shown(FactSheet([("key", "a\tb")]), 80) == ["key  a   b"]
