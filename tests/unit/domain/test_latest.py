"""What is remembered: the entries that were written last."""

from fanin.domain.latest import Latest


def test_the_oldest_goes_and_what_is_written_again_is_the_newest():
    known = Latest[str, int](2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        known[key] = value

    assert list(known.items()) == [("a", 3), ("c", 4)]
