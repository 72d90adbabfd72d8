import base64
from dataclasses import fields, replace
from typing import Any

import pytest

from fanin import names
from fanin.adapters.dynamodb.rows import _STORED, decode, encode, sharded, word_id, word_key
from fanin.app.ports.words import WordKey
from fanin.domain import limits
from fanin.domain.batch import Batch, Cause, ChildFailures, Kind, Mode, OnDeadline, OnFailure, State, Trouble
from fanin.domain.failures import Keep, Tolerance

BATCH = Batch(
    batch_id=2**53 - 1,
    salt=b"\x00\xff" * 8,
    created_at=1,
    touched_at=2,
    expires_at=3,
    open_idle_ttl=4,
    closed_idle_ttl=5,
    state=State.COMPLETE,
    mode=Mode.ESTIMATED,
    kind=Kind.FRAME,
    user_key="k",
    items=2**40,
    closed_at=6,
    ended_at=7,
    deadline=8,
    on_deadline=OnDeadline.COMPLETE,
    limit=9,
    pending_bound=10,
    parent_item="p",
    retry_of=77,
    instead_of=78,
    metadata={"m": "v"},
    acked=11,
    failed=12,
    failed_more=False,
    partial=True,
    retries=2,
    keep=Keep.REASON,
    on_failure=OnFailure.HOLD,
    child_failures=ChildFailures.IGNORE,
    tolerated_failures=Tolerance(count=3, percent=0.5, min_sample=13),
    cause=Cause.FAILURES,
    failing=14,
    held=15,
    held_more=True,
    stall_after=13,
    stall_told=14,
    stall_why="no consumer",
    targets=3,
    totals={"rows": 2**93, "cents": -5},
    totals_exact=True,
    totals_before={"rows": 7},
    results=True,
    opened_by="o",
    attention=Trouble.TARGETS,
    draining_at=15,
    max_items=16,
    grown=17,
    keyed=18,
    milestones=(19, 20),
    milestone=19,
    failing_at=21,
    waiting_at=22,
)


def test_the_sample_has_a_value_of_its_own_in_every_field():
    values = [getattr(BATCH, field.name) for field in fields(Batch)]

    assert None not in values
    assert all(getattr(BATCH, field.name) != field.default for field in fields(Batch))
    assert {field.name for field in fields(Batch)} >= _STORED


@pytest.mark.parametrize(
    "without",
    [
        dict.fromkeys(("closed_at", "ended_at", "deadline", "limit", "parent_item")),
        {"targets": 0},
        dict.fromkeys(("tolerated_failures", "cause"))
        | {
            "on_failure": OnFailure.DONE,
            "child_failures": ChildFailures.FAIL,
            "failing": 0,
            "held": 0,
            "held_more": False,
        },
    ],
    ids=["what is None", "no targets", "neither hold nor tolerance"],
)
def test_what_a_batch_does_not_have_takes_no_bytes(without):
    batch = replace(BATCH, **without)
    row = encode(batch)

    assert not row.keys() & without.keys()
    assert decode(row) == batch


def test_a_row_decodes_to_what_it_encodes():
    decoded = decode(encode(BATCH))

    assert decoded == BATCH
    assert [type(getattr(decoded, f.name)) for f in fields(Batch)] == [
        type(getattr(BATCH, f.name)) for f in fields(Batch)
    ]


def test_a_stream_image_decodes_too():
    image: dict[str, Any] = encode(BATCH)
    image["salt"] = {"B": base64.b64encode(BATCH.salt).decode()}

    assert decode(image) == BATCH


def test_attributes_of_later_versions_are_passed_over():
    assert decode({**encode(BATCH), "colour": {"S": "red"}}) == BATCH


def test_a_row_is_in_the_shard_of_its_state():
    row = encode(BATCH)

    assert row["shelf"] == {"S": "complete#7"}
    assert row["due_at"] == {"N": str(BATCH.due_at)}
    assert {sharded(State.OPEN, batch_id) for batch_id in range(100)} == {f"open#{n}" for n in range(8)}


@pytest.mark.parametrize("key", [WordKey(0, 0, 0), WordKey(2**53 - 1, 6, 2**34)])
def test_a_word_key_reads_back(key):
    assert word_key(word_id(key)) == key


def test_a_batch_with_a_user_key_has_the_key_of_its_index_and_no_other_has():
    named = replace(BATCH, batch_id=19, user_key="catalog-42")

    assert encode(named)["user_shard"] == {"S": "catalog-42#3"}
    assert "user_shard" not in encode(replace(named, user_key=""))


def test_the_longest_user_key_fits_a_partition_key():
    most = 2_048  # bytes, see "Quotas in Amazon DynamoDB"
    shards = {sharded("\U0001f302" * limits.MAX_USER_KEY, shard) for shard in range(names.SHARDS)}

    assert max(len(shard.encode()) for shard in shards) <= most
