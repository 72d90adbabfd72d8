"""Tables, also on narrow terminals."""

from __future__ import annotations

import io

from rich.console import Console

from fanin.cli.listing import Listing, facts

ITEM = "245218792084582:00000000-0000-8000-80a1-12eed0d11df3:14"


def shown(renderable, width: int) -> list[str]:
    screen = io.StringIO()
    Console(file=screen, width=width).print(renderable, markup=False)
    return [line.rstrip() for line in screen.getvalue().splitlines()]


def failures() -> Listing:
    made = Listing(("ordinal", "item", "state", "kept", "reason"), right=("ordinal",))
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


def test_a_column_that_is_empty_in_every_row_is_left_out_and_without_rows_none_is():
    assert "kept" not in " ".join(shown(failures(), 120))
    assert "kept" in " ".join(shown(Listing(("item", "kept")), 120))


def test_long_values_of_facts_are_folded_not_cut():
    lines = shown(facts([("queue", "x" * 100)]), 40)

    assert "".join(line[7:] for line in lines) == "x" * 100
