import pytest

from fanin.domain.totals import MAX_VALUE, by_name, check_names, check_values, in_order, plus, with_values
from fanin.errors import InvalidRequest


class TestNames:
    def test_are_up_to_four_different_words(self):
        assert check_names(["rows", "cents", "b_2", "x" * 32]) == ("rows", "cents", "b_2", "x" * 32)
        assert check_names(()) == ()
        assert check_names(name for name in ["rows"]) == ("rows",)

    @pytest.mark.parametrize(
        ("names", "why"),
        [
            ("rows", "must be a list of names"),
            (7, "must be a list of names"),
            (None, "must be a list of names"),
            (["a", "b", "c", "d", "e"], "at most 4 totals, not 5"),
            (["rows", "rows"], "a name of its own: rows, rows"),
            (["Rows"], "'Rows' does not"),
            (["2rows"], "'2rows' does not"),
            (["x" * 33], "does not"),
            (["rows\n"], "does not"),
            ([7], "7 does not"),
            ([""], "'' does not"),
        ],
    )
    def test_others_are_refused(self, names, why):
        with pytest.raises(InvalidRequest, match=why):
            check_names(names)


class TestValues:
    def test_are_whole_numbers_within_two_to_the_53rd(self):
        values = {"rows": MAX_VALUE, "cents": -MAX_VALUE, "bytes": 0}
        assert check_values(values) == values

    @pytest.mark.parametrize(
        ("values", "why"),
        [
            ({"rows": 2**53 + 1}, "must be a whole number from -9007199254740992 to 9007199254740992"),
            ({"rows": -(2**53) - 1}, "whole number"),
            ({"rows": 1.0}, "total 'rows' must be a whole number .* not 1.0"),
            ({"rows": True}, "whole number"),
            ({"rows": "812"}, "whole number"),
            ({"rows": None}, "whole number"),
            ([("rows", 1)], "whole numbers by name"),
            (812, "whole numbers by name"),
            ({"Rows": 1}, "the name of a total has at most 32 .* 'Rows' does not"),
            ({"rows\n": 1}, "does not"),
            ({7: 1}, "7 does not"),
        ],
    )
    def test_others_are_refused(self, values, why):
        with pytest.raises(InvalidRequest, match=why):
            check_values(values)

    def test_stand_in_the_order_of_the_batch(self):
        assert in_order({"cents": -5}, ("rows", "cents"), batch_id=7) == (0, -5)
        assert in_order({}, ("rows",), batch_id=7) == (0,)
        assert in_order({}, (), batch_id=7) == ()

    def test_of_a_total_that_the_batch_does_not_have_are_refused(self):
        with pytest.raises(InvalidRequest, match="batch 7 has no total 'row': its totals are rows, cents"):
            in_order({"row": 1}, ("rows", "cents"), batch_id=7)
        with pytest.raises(InvalidRequest, match="batch 7 has no total 'row': it was opened without totals"):
            in_order({"row": 1}, (), batch_id=7)


def test_sums_add_up_total_by_total():
    assert plus((1, 2), (10, -20)) == (11, -18)
    assert plus((), (1, 2)) == plus((1, 2), ()) == (1, 2)
    assert plus((1,), (1, 2)) == (2, 2)
    assert plus((2**92,) * 4, (2**92,) * 4) == (2**93,) * 4
    assert by_name(("rows", "cents"), (3,)) == {"rows": 3, "cents": 0}


def test_what_an_item_brings_adds_up_or_is_refused_whole():
    assert with_values({"rows": 1}, {"rows": 2, "cents": -3}) == {"rows": 3, "cents": -3}
    with pytest.raises(InvalidRequest, match="whole number"):
        with_values({"rows": 1}, {"rows": MAX_VALUE})
    assert check_values({"rows": MAX_VALUE + 1}, 2 * MAX_VALUE)
