"""Leaves out words that are done already, so that a run that died at nine tenths writes the rest.

A write that finds its bits cleared is refused, and costs what a write costs; five reads cost one write. So a
task looks at the words above first, which are a 64th as many and say which words are whole. Below a word that
is not whole only the word itself tells: it is read where a sample, or the calls before, say that enough is
done.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

from fanin.app.ports.words import WordKey, WordStore
from fanin.domain.tree import Bits, Tree

_T = TypeVar("_T", bound=tuple[Bits, object])

WORTH: Final = 0.2  # share of words that must be done before reading all is cheaper than writing in vain
SAMPLE: Final = 100  # words that are read to find this share: one request
_TREE: Final = Tree()


class Sieve:
    """Divides marks into those to write and those that are done; one for each task.

    A mark is done if the bit of its word is cleared in the word above, or if its bits are cleared in its own
    word. But a process may have died between a word that it finished and the word above. A write below such a
    word carries it up, so one mark below each of them is written, and so is a finished word whose bit above
    is pending.
    """

    def __init__(self, words: WordStore) -> None:
        self._words = words
        self._share = 0.0
        self._sampled = False

    def sift(self, shares: Mapping[int, Sequence[_T]]) -> tuple[dict[int, list[_T]], dict[int, int]]:
        """The marks of each batch that are left to be written, and the number of its items that are done."""
        marks = [
            (WordKey(batch_id, one[0].level, one[0].number), one)
            for batch_id, share in shares.items()
            for one in share
        ]
        stuck = self._below_done({key for key, _ in marks})
        left: dict[int, list[_T]] = {batch_id: [] for batch_id in shares}
        done = dict.fromkeys(shares, 0)
        carried: set[WordKey | None] = {None}
        known = list[tuple[WordKey, _T, bool]]()
        for key, one in marks:
            if key in stuck:
                known.append((key, one, stuck[key] in carried))
                carried.add(stuck[key])
        open_ = [(key, one) for key, one in marks if key not in stuck]
        for key, one, cleared in chain(known, self._looked_at(open_)):
            if cleared:
                done[key.batch_id] += _TREE.below(key.level, one[0].mask)
            else:
                left[key.batch_id].append(one)
        return left, done

    def _below_done(self, keys: Collection[WordKey]) -> dict[WordKey, WordKey | None]:
        """Words whose bit above is cleared → the finished word above that nobody has carried up, or None."""
        found: dict[WordKey, WordKey | None] = {}
        at = {key: key for key in keys}
        while at:
            words = self._read([_parent(key) for key in at.values()])
            at, asked = {}, at
            for key, node in asked.items():
                parent = _parent(node)
                word = words.get(parent, _TREE.full)
                if word >> node.number % _TREE.width & 1:
                    if node != key:
                        found[key] = node
                elif _may_be_finished(word):
                    at[key] = parent
                else:
                    found[key] = None
        return found

    def learn(self, items: int, vain: int) -> None:
        """Note how many items the written words hold, and how many of them had been done before."""
        if items:
            self._share = vain / items

    def _looked_at(self, marks: Sequence[tuple[WordKey, _T]]) -> Iterator[tuple[WordKey, _T, bool]]:
        """Say of each mark whether it is known to be done."""
        if not self._sampled and marks:
            self._sampled = True
            some = marks[:: max(1, len(marks) // SAMPLE)][:SAMPLE]
            words = self._read([key for key, _ in some])
            self._share = sum(_cleared(words, key, one[0]) for key, one in some) / len(some)
        if self._share < WORTH:
            yield from ((key, one, False) for key, one in marks)
            return
        words = self._read([key for key, _ in marks])
        found = [(key, one, _cleared(words, key, one[0])) for key, one in marks]
        self._share = sum(cleared for *_, cleared in found) / len(found) if found else self._share
        yield from found

    def _read(self, keys: Sequence[WordKey]) -> dict[WordKey, int]:
        return self._words.read(dict.fromkeys(keys)) if keys else {}


def _parent(key: WordKey) -> WordKey:
    return WordKey(key.batch_id, key.level + 1, key.number // _TREE.width)


def _cleared(words: Mapping[WordKey, int], key: WordKey, mark: Bits) -> bool:
    """Whether the bits of a mark are cleared in a word that is certainly not finished."""
    word = words.get(key, _TREE.full)
    return not word & mark.mask and not _may_be_finished(word)


def _may_be_finished(word: int) -> bool:
    """Whether nothing may be pending: the last word of a level keeps the bits behind its last child."""
    return word + (word & -word) in (0, _TREE.full + 1)
