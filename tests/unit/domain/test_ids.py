"""Identifiers: what goes out comes back, and nothing else gets in."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanin.domain import ids
from fanin.domain.ids import Block, Group
from fanin.errors import InvalidItemId, InvalidRequest

SALT = bytes(range(16))

batch_ids = st.integers(0, ids.MAX_BATCH_ID)
blocks = st.builds(
    ids.issue, batch_ids, st.integers(0, ids.MAX_ITEMS - 1), st.integers(1, ids.MAX_COUNT), st.just(SALT)
)


def flipped(block: Block, bit: int) -> str:
    return f"{block.batch_id}:{UUID(int=UUID(block.group_id).int ^ 1 << bit)}"


def test_the_digest_of_a_payload_tells_it_from_others():
    assert len({ids.payload_digest(body) for body in ("a", "b", "ab")}) == 3


def test_the_sizes_of_ids_are_those_of_the_record():
    """Ids are stored and sent, so their form never changes; see docs/explanation/adr."""
    assert ids.MAX_BATCH_ID == (1 << 53) - 1
    assert ids.MAX_ITEMS == 1 << 40
    assert ids.MAX_COUNT == (1 << 32) - 1
    assert ids.SALT_BYTES == 16


class TestBatchIds:
    def test_a_time_too_large_for_41_bits_begins_again(self):
        assert ids.batch_id(1_735_689_600_000 + 2**41 + 5, 7) == 5 << 12 | 7

    def test_random_bits_beyond_12_are_dropped(self):
        assert ids.batch_id(1_735_689_600_002, 4096 + 7) == 2 << 12 | 7

    @given(st.integers(1_735_689_600_000, 1_735_689_600_000 + 2**41 - 1), st.integers(0, 4095))
    def test_order_by_time_and_stay_exact_in_json(self, now, bits):
        batch = ids.batch_id(now, bits)

        assert 0 <= batch <= ids.MAX_BATCH_ID
        assert batch == float(batch)
        assert batch >> 12 == now - 1_735_689_600_000
        assert batch & 4095 == bits
        assert ids.made_at(batch) == now

    @given(batch_ids)
    def test_read_back(self, batch):
        assert ids.parse_batch_id(str(batch)) == batch

    @pytest.mark.parametrize(
        "text", ["", "-1", "+1", "01", " 1", "1 ", "1\n", "1.0", "1e3", "\uff11", "x", str(2**53), "9" * 40]
    )
    def test_refuse_what_is_no_canonical_number_below_2_to_the_53(self, text):
        with pytest.raises(InvalidRequest, match="2\\^53"):
            ids.parse_batch_id(text)

    @given(batch_ids)
    def test_have_a_uuid_form(self, batch):
        text = ids.batch_uuid(batch)

        assert UUID(text).version == 8
        assert ids.parse_batch_uuid(text) == ids.parse_batch_uuid(text.upper()) == batch

    def test_have_a_uuid_form_up_to_the_largest(self):
        assert ids.batch_uuid(5) == "00000000-0000-8000-8000-000000000005"
        assert ids.parse_batch_uuid(ids.batch_uuid(ids.MAX_BATCH_ID)) == ids.MAX_BATCH_ID

    @given(batch_ids, st.integers(53, 127))
    def test_refuse_a_uuid_that_was_not_issued(self, batch, bit):
        other = str(UUID(int=UUID(ids.batch_uuid(batch)).int ^ 1 << bit))

        with pytest.raises(InvalidRequest):
            ids.parse_batch_uuid(other)

    @pytest.mark.parametrize("text", ["", "no", "{%s}", "urn:uuid:%s"])
    def test_refuse_other_writings_of_a_uuid(self, text):
        with pytest.raises(InvalidRequest):
            ids.parse_batch_uuid(text.replace("%s", ids.batch_uuid(5)))


class TestGroupIds:
    @pytest.mark.parametrize(
        ("block", "group"),
        [
            ((5, 0xABCDEF0123, 0x456789AB), "abcdef01-2345-8678-a6ac-3d676ae8d212"),
            ((ids.MAX_BATCH_ID, ids.MAX_ITEMS - 1, 1), "ffffffff-ff00-8000-8006-a60897c1426c"),
        ],
    )
    def test_stay_as_they_were_when_first_issued(self, block, group):
        """Messages on their way carry them, so a later version must issue and accept the same."""
        assert ids.issue(*block, SALT).group_id == group
        assert ids.parse_prefix(f"{block[0]}:{group}") == ids.issue(*block, SALT)

    @given(blocks)
    def test_encode_their_range(self, block):
        parsed = ids.parse_prefix(block.prefix)

        assert parsed == block
        assert parsed.genuine(SALT)
        assert UUID(block.group_id).version == 8
        assert UUID(block.group_id).variant == "specified in RFC 4122"

    @given(blocks, st.integers(0, 127))
    def test_are_refused_with_any_bit_flipped(self, block, bit):
        """The chance that a forged check is right is 2^-50."""
        try:
            forged = ids.parse_prefix(flipped(block, bit))
        except InvalidItemId:
            return
        assert forged != block
        assert not forged.genuine(SALT)

    @given(blocks)
    def test_are_refused_for_another_batch_or_another_salt(self, block):
        assert not block._replace(batch_id=block.batch_id ^ 1).genuine(SALT)
        assert not block.genuine(bytes(16))

    @pytest.mark.parametrize(
        "text",
        [
            *("", ":", "5", "5:", ":%s", "x:%s", "05:%s", "\uff15:%s", "-5:%s", "9007199254740992:%s"),
            *("5:{%s}", "5:urn:uuid:%s", "5:%s ", "5::%s", "5:%S"),
            *("5:00000000-0000-4000-8000-000000000001", "5:00000000-0000-8000-8000-000000000000"),
        ],
    )
    def test_are_refused_unless_written_as_they_were_given(self, text):
        group = ids.issue(5, 0xABCDEF, 3, SALT).group_id

        with pytest.raises(InvalidItemId):
            ids.parse_prefix(text.replace("%s", group).replace("%S", group.upper()))


class TestItemIds:
    @given(blocks, st.data())
    def test_come_back_as_ordinals(self, block, data):
        group = Group(block.batch_id, block.group_id, block.size)
        index = data.draw(st.integers(0, block.size - 1))

        assert ids.parse_item(group[index]) == (block, block.first + index)

    def test_are_refused_without_any_colon(self):
        with pytest.raises(InvalidItemId, match="is not <batch id>:<group id>:<index>"):
            ids.parse_item("5")

    @pytest.mark.parametrize(
        "index",
        [
            *("", "01", "00", "+1", "-1", " 1", "1 ", "1\n", "\uff11", "1.0", "1_0", "0x1", "1,2", ","),
            *("10", "9" * 40),
        ],
    )
    @pytest.mark.parametrize(("before", "after"), [([], []), (["0", "1"], []), (["0"], ["1", "y"])])
    def test_are_refused_unless_their_index_is_canonical_and_in_range(self, index, before, after):
        block = ids.issue(5, 70, 10, SALT)

        with pytest.raises(InvalidItemId, match="whole number from 0 to 9,") as refused:
            ids.parse_indices(block, [*before, index, *after])

        assert f"{block.prefix}:{index[:32]} " in str(refused.value)

    def test_the_last_of_a_group_is_in_range(self):
        assert ids.parse_indices(ids.issue(5, 70, 10, SALT), ["9", "0"]) == [79, 70]


class TestGroup:
    group = Group(5, ids.issue(5, 70, 10, SALT).group_id, 10)

    def test_expands_lazily_to_all_its_ids(self):
        assert len(self.group) == 10
        assert list(self.group) == [f"{self.group.prefix}:{i}" for i in range(10)]
        assert next(iter(Group(5, "g", ids.MAX_COUNT))) == "5:g:0"

    def test_is_a_sequence(self):
        assert self.group[-1] == f"{self.group.prefix}:9"
        assert list(self.group[2:4]) == [f"{self.group.prefix}:2", f"{self.group.prefix}:3"]
        assert self.group[2:8][1:-1:2] == self.group[3:7:2]
        assert (len(self.group[2:4]), self.group[2:4][-1]) == (2, self.group[3])
        assert self.group[3] in self.group
        with pytest.raises(IndexError):
            self.group[10]
