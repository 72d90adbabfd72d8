"""One declaration: its schema, its writer and its reader agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from fanin.wire.json_types import NATURAL, TEXT, many, map_of, or_null, text, whole
from fanin.wire.shapes import SHAPES, Inline, answer, plain, request, wrapped


@dataclass(frozen=True)
class Wish:
    size: int
    name: str = "nobody"
    note: str | None = None
    tags: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


WISH = request(
    "Wish",
    Wish,
    size=whole(1, 9).called("n"),
    name=text(5),
    note=or_null(TEXT),
    tags=many(TEXT, 2).left_out_if_empty(),
    labels=map_of(TEXT),
)


@dataclass(frozen=True)
class Row:
    number: int
    secret: str
    left: str | None = None

    @property
    def double(self) -> int:
        return 2 * self.number


ROW = answer("Row", Row, "number double left", without={"secret": ""})


class TestRequest:
    def test_a_field_whose_attribute_has_a_default_may_be_left_out(self):
        assert WISH.definition["required"] == ["n"]
        assert WISH.decode({"n": 3}) == Wish(3)
        assert WISH.decode({"n": 3, "note": None, "labels": None}) == Wish(3)

    def test_none_is_left_out_and_what_is_empty_where_the_field_says_so(self):
        assert WISH.encode(Wish(3)) == {"n": 3, "name": "nobody", "labels": {}}
        assert WISH.encode(Wish(3, note="", tags=["a"])) == {
            "n": 3, "name": "nobody", "note": "", "tags": ["a"], "labels": {},
        }  # fmt: skip

    def test_attributes_from_elsewhere_are_given_by_keyword(self):
        shape = request("Part", Wish, name=TEXT)
        assert shape.decode({"name": "x"}, size=4) == Wish(4, "x")

    def test_a_field_that_is_needed_is_needed(self):
        with pytest.raises(KeyError, match="n"):
            WISH.decode({})

    def test_a_default_of_the_shape_stands_where_the_attribute_has_none(self):
        shape = request("Sized", Wish, size=whole(1).or_else(7))
        assert shape.definition["required"] == []
        assert shape.decode({}) == Wish(7)


class TestAnswer:
    def test_every_field_is_there_whatever_is_in_it(self):
        assert ROW.definition["required"] == ["number", "double", "left"]
        assert ROW.encode(Row(2, "s")) == {"number": 2, "double": 4, "left": None}
        assert ROW.encode(Row(2, "s", "now")) == {"number": 2, "double": 4, "left": "now"}

    def test_what_stays_inside_is_neither_written_nor_read(self):
        assert ROW.decode({"number": 2, "double": 4, "secret": "guess"}) == Row(2, "")

    def test_a_property_is_written_and_not_read(self):
        assert ROW.decode({"number": 2, "double": 99}).double == 4

    def test_what_an_earlier_version_did_not_say_has_its_default_and_what_has_none_is_needed(self):
        assert ROW.decode({"number": 2}).left is None
        with pytest.raises(KeyError, match="number"):
            ROW.decode({"left": "now"})

    def test_a_shape_within_a_shape_is_named(self):
        @dataclass(frozen=True)
        class Pair:
            row: Row | None
            more: Sequence[Row]

        shape = answer("Pair", Pair)
        row = {"$ref": "#/components/schemas/Row"}
        assert shape.definition["properties"]["row"] == {"anyOf": [row, {"type": "null"}]}
        assert shape.definition["properties"]["more"]["items"] == row
        pair = Pair(None, (Row(2, ""),))
        assert shape.encode(pair) == {"row": None, "more": [{"number": 2, "double": 4, "left": None}]}
        assert shape.decode(shape.encode(pair)) == pair

    def test_an_inlined_shape_stands_beside_the_others(self):
        @dataclass(frozen=True)
        class Wide:
            row: Row
            other: int

        shape = answer("Wide", Wide, row=Inline(ROW), other=NATURAL)
        assert list(shape.definition["properties"]) == ["number", "double", "left", "other"]
        assert shape.definition["required"] == ["number", "double", "left", "other"]
        wide = {"number": 1, "double": 2, "left": None, "other": 5}
        assert shape.encode(Wide(Row(1, ""), 5)) == wide
        assert shape.decode(wide) == Wide(Row(1, ""), 5)


def test_a_list_may_be_the_only_field():
    shape = wrapped("Rows", "rows", many(ROW))
    rows = {"rows": [{"number": 1, "double": 2, "left": None}]}
    assert shape.encode([Row(1, "")]) == rows
    assert shape.decode(rows) == (Row(1, ""),)


def test_two_shapes_of_one_name_are_an_error():
    with pytest.raises(ValueError, match="two shapes are called Row"):
        plain("Row", {})
    assert SHAPES["Row"] is ROW


@pytest.mark.parametrize("lenient", [True, False])
def test_a_plain_object_is_read_as_it_comes(lenient):
    shape = plain(f"Plain{lenient}", {"a": NATURAL}, {"b": TEXT}, lenient=lenient)
    assert shape.definition["required"] == ["a"]
    assert shape.definition["additionalProperties"] is lenient
    assert shape.decode({"a": 1}) == {"a": 1}
