"""The tables: keys, retention, backups and streams."""

import pytest

from fanin import names
from fanin_cdk.table_access import BEGIN, PROGRESS

TABLES = ("batches", "words", "parts", "directory")
LIMIT = {"MaxWriteRequestUnits": 50_000, "MaxReadRequestUnits": 9_000}


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_on_demand_encrypted_restorable_and_emptied_by_time(fanin, tracker, table):
    properties = fanin.properties(tracker.storage.tables[table])
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    assert properties["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    assert properties["TimeToLiveSpecification"] == {"AttributeName": "expires_at", "Enabled": True}


@pytest.mark.parametrize(
    ("table", "key", "stream"),
    [
        ("batches", [("batch_id", "HASH", "N")], {"StreamViewType": "NEW_AND_OLD_IMAGES"}),
        ("words", [("word_id", "HASH", "S")], {"StreamViewType": "NEW_IMAGE"}),
        ("parts", [("batch_id", "HASH", "N"), ("part", "RANGE", "S")], None),
        (
            "directory",
            [("topic", "HASH", "S"), ("name", "RANGE", "S")],
            {"StreamViewType": "NEW_AND_OLD_IMAGES"},
        ),
    ],
)
def test_a_table_has_its_key_and_its_stream(fanin, tracker, table, key, stream):
    properties = fanin.properties(tracker.storage.tables[table])
    types = {a["AttributeName"]: a["AttributeType"] for a in properties["AttributeDefinitions"]}
    assert [
        (k["AttributeName"], k["KeyType"], types[k["AttributeName"]]) for k in properties["KeySchema"]
    ] == key
    assert properties.get("StreamSpecification") == stream


def test_batches_are_found_by_shelf_and_time(fanin, tracker):
    properties = fanin.properties(tracker.storage.batches)
    index, *_ = properties["GlobalSecondaryIndexes"]
    assert index == {
        "IndexName": names.INDEX_BY_STATE_SHARD,
        "KeySchema": [
            {"AttributeName": "shelf", "KeyType": "HASH"},
            {"AttributeName": "due_at", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["touched_at"]},
    }
    types = {a["AttributeName"]: a["AttributeType"] for a in properties["AttributeDefinitions"]}
    assert (types["shelf"], types["due_at"]) == ("S", "N")


def test_batches_are_found_by_user_key_through_an_index_that_only_an_opening_writes(fanin, tracker):
    # Given an index of keys that no acknowledgement changes, and of nothing else
    properties = fanin.properties(tracker.storage.batches)
    _, index, attention = properties["GlobalSecondaryIndexes"]
    assert index == {
        "IndexName": names.INDEX_BY_USER_KEY,
        "KeySchema": [
            {"AttributeName": "user_shard", "KeyType": "HASH"},
            {"AttributeName": "batch_id", "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    types = {a["AttributeName"]: a["AttributeType"] for a in properties["AttributeDefinitions"]}
    assert (types["user_shard"], types["batch_id"]) == ("S", "N")
    assert attention["KeySchema"][0]["AttributeName"] == names.ATTENTION
    assert attention["Projection"] == {"ProjectionType": "KEYS_ONLY"}
    # Then who moves a batch forward may not write its key
    assert names.USER_SHARD not in {*PROGRESS, *BEGIN}


@pytest.mark.parametrize(("given", "policy"), [("fanin", "Retain"), ("frugal", "Delete")])
def test_tables_and_logs_outlive_the_stack_if_the_settings_say_so(request, given, policy):
    # Given a stack with the setting
    stack = request.getfixturevalue(given)
    # Then what holds data has the policy
    holders = [
        r for r in stack.resources.values() if r["Type"] in ("AWS::DynamoDB::Table", "AWS::Logs::LogGroup")
    ]
    more = 2 if given == "fanin" else 1  # the log of the function that cleans up, and the access log
    assert len(holders) == len(TABLES) + len(stack.stack.tracker.functions) + more
    assert {(r["DeletionPolicy"], r["UpdateReplacePolicy"]) for r in holders} == {(policy, policy)}
    # And DynamoDB itself refuses to delete tables that are to stay
    protected = {
        table["DeletionProtectionEnabled"] for table in stack.of_type("AWS::DynamoDB::Table").values()
    }
    assert protected == {policy == "Retain"}


def test_throughput_is_left_to_dynamodb_unless_the_settings_say_otherwise(fanin, tracker):
    for table in tracker.storage.tables.values():
        properties = fanin.properties(table)
        for throttled in (properties, *properties.get("GlobalSecondaryIndexes", [])):
            assert {"WarmThroughput", "OnDemandThroughput"}.isdisjoint(throttled)


def test_the_words_table_is_warm_and_every_table_limited_if_the_settings_say_so(frugal):
    tables = {name: frugal.properties(table) for name, table in frugal.stack.tracker.storage.tables.items()}
    assert tables["words"]["WarmThroughput"] == {"WriteUnitsPerSecond": 40_000}
    assert [name for name, table in tables.items() if "WarmThroughput" in table] == ["words"]
    for table in tables.values():
        assert table["OnDemandThroughput"] == LIMIT


def test_an_index_has_the_limit_of_its_table(frugal):
    """DynamoDB limits an index on its own; without a limit its writes may cost as much again."""
    indexes = frugal.properties(frugal.stack.tracker.storage.batches)["GlobalSecondaryIndexes"]
    assert [index["OnDemandThroughput"] for index in indexes] == [LIMIT] * 3
