"""The arithmetic of the tree, by brute force on small ones and by property on all."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain.tree import Bits, Tree, positions, runs, runs_of_masks

SMALL = [2, 3, 4]
widths = st.integers(2, 64)
sizes = st.one_of(st.integers(1, 300), st.integers(1, 2**40))


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Tree, int, int, int]:
    """A tree, a size it has reached, and a range within it; often at the edges of words."""
    tree = Tree(draw(widths))
    n = draw(sizes)
    edges = st.integers(0, tree.root_level(n)).flatmap(
        lambda level: st.integers(0, n // tree.span(level)).map(lambda i: i * tree.span(level))
    )
    points = st.one_of(st.integers(0, n), edges)
    start, stop = sorted((draw(points), draw(points)))
    return tree, n, start, stop


def items_below(tree: Tree, mark: Bits) -> list[tuple[int, int]]:
    """Ranges of items that the bits of a mark stand for."""
    step = tree.span(mark.level) // tree.width
    base = mark.number * tree.width
    return [((base + bit) * step, (base + bit + 1) * step) for bit in positions(mark.mask)]


class TestCover:
    @given(ranges())
    def test_covers_the_range_and_nothing_else(self, case):
        tree, n, start, stop = case

        parts = sorted(part for mark in tree.cover(start, stop, n) for part in items_below(tree, mark))

        at = start
        for low, high in parts:
            assert low == at
            at = high
        # The last bit may stand for a child that is shorter than others only at the end of the tree.
        assert at == stop

    @given(ranges())
    def test_marks_bits_of_at_most_two_words_a_level_lowest_first_and_none_above_the_root(self, case):
        tree, n, start, stop = case

        marks = list(tree.cover(start, stop, n))

        levels = [mark.level for mark in marks]
        assert levels == sorted(levels)
        assert max(Counter(levels).values(), default=0) <= 2
        assert max(levels, default=0) <= tree.root_level(n)
        assert len({(mark.level, mark.number) for mark in marks}) == len(marks)
        assert all(0 < mark.mask <= tree.full for mark in marks)

    def test_a_whole_batch_of_a_million_is_few_words(self):
        assert len(list(Tree().cover(0, 10**6, 10**6))) <= 4
        assert len(list(Tree().cover(0, 10**9, 10**9))) <= 5


class TestShape:
    @given(widths, sizes)
    def test_the_root_is_the_lowest_word_that_covers_everything(self, width, n):
        tree = Tree(width)

        root = tree.root_level(n)

        assert tree.span(root) >= n
        assert root == 0 or tree.span(root - 1) < n
        assert tree.last(root, n) == 0

    def test_an_empty_batch_has_its_root_at_the_bottom(self):
        assert Tree().root_level(0) == 0

    @pytest.mark.parametrize("width", SMALL)
    def test_residue_has_the_bits_of_children_that_do_not_exist(self, width):
        tree = Tree(width)
        for n in range(1, 80):
            children = n
            for level in range(tree.root_level(n) + 1):
                words = -(-children // width)
                for number in range(words):
                    existing = {i - number * width for i in range(children) if i // width == number}
                    absent = sum(1 << bit for bit in range(width) if bit not in existing)
                    assert tree.residue(level, number, n) == absent
                children = words

    @given(widths, sizes, st.integers(0, 6), st.data())
    def test_children_are_the_pending_ones_that_exist(self, width, n, level, data):
        tree = Tree(width)
        level = min(level, tree.root_level(n))
        number = data.draw(st.integers(0, tree.last(level, n)))
        word = data.draw(st.integers(0, tree.full))
        below = n if level == 0 else tree.last(level - 1, n) + 1

        children = list(tree.children(level, number, word, n))

        every = range(number * width, min(below, (number + 1) * width))
        assert children == [child for child in every if word >> child % width & 1]

    @pytest.mark.parametrize(
        ("level", "mask", "items"), [(0, 0b1011, 3), (1, 0b1, 4), (1, 0b110, 8), (2, 0b1000, 16), (2, 0, 0)]
    )
    def test_a_bit_stands_for_as_many_items_as_the_word_below_it(self, level, mask, items):
        assert Tree(4).below(level, mask) == items

    def test_a_word_has_64_bits_in_production(self):
        assert Tree().width == 64


class TestMayBeLast:
    @pytest.mark.parametrize("width", SMALL)
    def test_is_true_exactly_if_the_word_is_done_or_only_waits_for_its_last_child_at_some_size_yet_to_come(
        self, width
    ):
        tree = Tree(width)
        reach = width**3 + width
        for level in (0, 1, 2):
            for number in range(3):
                last_for: dict[int, set[int]] = {word: set() for word in range(1, tree.full)}
                for n in range(1, 4 * reach):
                    last = number == tree.last(level, n)
                    if number <= tree.last(level, n) and (residue := tree.residue(level, number, n)):
                        last_for[residue].add(n)
                    if level and last:
                        residue = tree.residue(level, number, n)
                        waits = residue | tree.bits[tree.last_children(level, n) - 1]
                        last_for.setdefault(waits, set()).add(n)
                last_for.pop(tree.full, None)  # nobody has written it
                for word, at in last_for.items():
                    for at_least in range(reach):
                        expected = any(n >= at_least for n in at)
                        assert tree.may_be_last(level, number, word, at_least) is expected

    @given(widths, sizes, sizes, st.integers(0, 5))
    def test_never_misses_the_edge(self, width, n, seen, level):
        """Whatever size a process saw before, the done word of the edge is one that it looks at again."""
        tree = Tree(width)
        seen = min(n, seen)
        level = min(level, tree.root_level(n))
        number = tree.last(level, n)

        word = tree.residue(level, number, n)

        assert word == 0 or tree.may_be_last(level, number, word, seen)


class TestAllDone:
    @given(widths, sizes, st.data())
    def test_is_true_exactly_if_nothing_but_the_last_words_is_left_to_carry_up(self, width, n, data):
        """An open tree carries up words that are 0 alone; its last words stay below pending bits."""
        tree = Tree(width)
        n = n % width**4 + 1
        levels = range(tree.root_level(n) + 1)

        def edge(missing: int | None) -> list[int]:
            words = []
            for level in levels:
                word = tree.residue(level, tree.last(level, n), n)
                if level and words[-1]:
                    word |= tree.bits[tree.last_children(level, n) - 1]
                if missing is not None and missing // tree.span(level) == tree.last(level, n):
                    word |= tree.bits[missing // (tree.span(level) // width) % width]
                words.append(word)
            return words

        assert tree.all_done(edge(None), n)
        assert not tree.all_done(edge(data.draw(st.integers(0, n - 1))), n)


class TestMarks:
    @given(widths, st.lists(st.integers(0, 2**40)))
    def test_group_items_by_word(self, width, ordinals):
        masks = Tree(width).masks(ordinals)

        found = {number * width + bit for number, mask in masks.items() for bit in positions(mask)}
        assert found == set(ordinals)
        assert all(masks.values())


class TestRuns:
    @given(st.sets(st.integers(0, 60)))
    def test_join_neighbours(self, ordinals):
        found = list(runs(sorted(ordinals)))

        assert [i for start, stop in found for i in range(start, stop)] == sorted(ordinals)
        assert all(a[1] < b[0] for a, b in pairwise(found))
        assert all(start < stop for start, stop in found)


@given(
    st.lists(st.one_of(st.sampled_from([0, 1, 1 << 63, 2**64 - 1]), st.integers(0, 2**64 - 1)), max_size=5),
    st.sets(st.integers(0, 4)),
)
def test_runs_of_masks_are_those_of_their_ordinals(masks, left_out):
    words = [(64 * number, mask) for number, mask in enumerate(masks) if number not in left_out]
    ordinals = [first + bit for first, mask in words for bit in positions(mask)]
    assert list(runs_of_masks(words)) == list(runs(ordinals))


@given(st.integers(0, 2**64 - 1))
def test_positions_are_those_of_the_bits(mask):
    assert sum(1 << position for position in positions(mask)) == mask
    assert list(positions(mask)) == sorted(positions(mask))


class TestSize:
    @given(widths, sizes, st.integers(0, 4))
    def test_counts_the_items_that_exist(self, width, n, level):
        tree = Tree(width)
        last = tree.last(level, n)

        assert last * tree.span(level) + tree.size(level, last, n) == n
        assert last == 0 or tree.size(level, last - 1, n) == tree.span(level)
        assert tree.size(-1, n - 1, n) == 1


class TestAncestors:
    @given(widths, sizes, st.data())
    def test_are_the_bits_above_the_word_up_to_the_root(self, width, n, data):
        tree = Tree(width)
        number = data.draw(st.integers(0, tree.last(0, n)))

        above = list(tree.ancestors(number, n))

        assert [mark.level for mark in above] == list(range(1, tree.root_level(n) + 1))
        for mark in above:
            ((low, high),) = items_below(tree, mark)
            assert low <= number * tree.width < high
        assert not above or above[-1].number == 0

    @given(widths, sizes, st.data())
    def test_of_a_higher_word_are_those_of_its_first_word_of_level_0_that_lie_above_it(self, width, n, data):
        tree = Tree(width)
        level = data.draw(st.integers(0, tree.root_level(n)))
        number = data.draw(st.integers(0, tree.last(level, n)))

        above = tree.ancestors(number, n, level=level)

        assert list(above) == list(tree.ancestors(number * width**level, n))[level:]

    @given(st.sampled_from([2, 4, 64]), st.integers(0, 3), st.integers(0, 10_000))
    def test_begin_with_the_parent_s_bit_which_stands_for_the_items_of_the_word(self, width, level, number):
        tree = Tree(width)

        parent = tree.parent(level, number)

        assert parent.level == level + 1
        assert items_below(tree, parent) == [(number * tree.span(level), (number + 1) * tree.span(level))]
