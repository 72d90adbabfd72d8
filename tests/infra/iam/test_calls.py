"""Which questions a call of AWS asks, by the tables of the Service Authorization Reference."""

import json

import pytest

from tests.infra.iam.calls import Asked, Place, UnknownCall, asked
from tests.infra.iam.wire import UnknownRequest, Wire, of_wire

HERE = Place("111122223333", "eu-west-1")
TABLE = "arn:aws:dynamodb:eu-west-1:111122223333:table/words"
QUEUE = "arn:aws:sqs:eu-west-1:111122223333:orders"
URL = "https://sqs.eu-west-1.amazonaws.com/111122223333/orders"


def test_an_update_names_all_attributes_of_its_expressions_and_its_key():
    (one,) = asked(
        "dynamodb",
        "UpdateItem",
        {
            "TableName": "words",
            "Key": {"word_id": {"S": "1/0"}},
            "UpdateExpression": "SET #s = if_not_exists(acked, :n), plain.inner = :m REMOVE gone ADD t0 :v",
            "ConditionExpression": "attribute_exists(#s) AND NOT begins_with(kind, :k) AND size(list) > :n",
            "ExpressionAttributeNames": {"#s": "state"},
            "ReturnValues": "ALL_NEW",
        },
        HERE,
    )
    assert (one.action, one.resource) == ("dynamodb:UpdateItem", TABLE)
    names = ("acked", "gone", "kind", "list", "plain", "state", "t0", "word_id")
    assert one.context["dynamodb:Attributes"] == names
    assert one.context["dynamodb:LeadingKeys"] == ("1/0",)
    assert one.context["dynamodb:ReturnValues"] == "ALL_NEW"


def test_a_read_without_a_projection_is_one_of_all_attributes():
    keys = [{"word_id": {"S": "b"}}, {"word_id": {"S": "a"}}]
    (one,) = asked("dynamodb", "BatchGetItem", {"RequestItems": {"words": {"Keys": keys}}}, HERE)
    assert one == Asked(
        "dynamodb:BatchGetItem",
        TABLE,
        {"dynamodb:LeadingKeys": ("a", "b"), "dynamodb:Select": "ALL_ATTRIBUTES"},
    )


def test_a_query_of_an_index_is_about_the_index():
    given = {
        "TableName": "words",
        "IndexName": "by_state",
        "KeyConditionExpression": "(shelf = :s) AND due_at < :d",
        "ExpressionAttributeValues": {":s": {"S": "open#1"}, ":d": {"N": "5"}},
    }
    (one,) = asked("dynamodb", "Query", given, HERE)
    assert one.resource == f"{TABLE}/index/by_state"
    assert one.context["dynamodb:LeadingKeys"] == ("open#1",)


def test_a_transaction_asks_for_each_of_its_items():
    given = {
        "TransactItems": [
            {"Put": {"TableName": "words", "Item": {"word_id": {"S": "a"}, "word": {"N": "1"}}}},
            {
                "ConditionCheck": {
                    "TableName": "words",
                    "Key": {"word_id": {"S": "b"}},
                    "ConditionExpression": "x = :x",
                }
            },
        ]
    }
    put, check = asked("dynamodb", "TransactWriteItems", given, HERE)
    assert (put.action, check.action) == ("dynamodb:PutItem", "dynamodb:ConditionCheckItem")
    assert put.context["dynamodb:EnclosingOperation"] == "TransactWriteItems"
    assert check.context["dynamodb:Attributes"] == ("word_id", "x")


def test_a_batch_of_messages_asks_as_one_message_with_the_tags_of_the_queue():
    (one,) = asked("sqs", "SendMessageBatch", {"QueueUrl": URL}, HERE, lambda arn: {"fanin:channel": arn})
    assert one == Asked("sqs:SendMessage", QUEUE, {"aws:ResourceTag/fanin:channel": QUEUE})


def test_a_queue_that_is_made_with_tags_asks_to_tag_it():
    made, tagged = asked("sqs", "CreateQueue", {"QueueName": "orders", "tags": {"a": "b"}}, HERE)
    assert (made.action, tagged.action, tagged.resource) == ("sqs:CreateQueue", "sqs:TagQueue", QUEUE)
    assert (tagged.context["aws:RequestTag/a"], tagged.context["aws:TagKeys"]) == ("b", ("a",))


def test_targets_of_a_rule_are_values_of_one_key():
    given = {"Rule": "r", "EventBusName": "shop", "Targets": [{"Arn": "arn:b"}, {"Arn": "arn:a"}]}
    (one,) = asked("events", "PutTargets", given, HERE)
    assert one.resource == "arn:aws:events:eu-west-1:111122223333:rule/shop/r"
    assert one.context == {"events:TargetArn": ("arn:a", "arn:b")}
    assert asked("events", "PutRule", {"Name": "r"}, HERE)[0].resource.endswith(":rule/r")


def test_a_schedule_passes_its_role():
    given = {"Name": "s", "GroupName": "g", "Target": {"RoleArn": "arn:role"}}
    schedule, role = asked("scheduler", "UpdateSchedule", given, HERE)
    assert schedule.resource.endswith(":schedule/g/s")
    assert role == Asked("iam:PassRole", "arn:role", {"iam:PassedToService": "scheduler.amazonaws.com"})


@pytest.mark.parametrize(
    ("wire", "found"),
    [
        (
            Wire("POST", "/?", "DynamoDB_20120810.Scan", b'{"TableName": "t"}'),
            ("dynamodb", "Scan", {"TableName": "t"}),
        ),
        (
            Wire("DELETE", "/schedules/a%2Fb?groupName=g", "", b""),
            ("scheduler", "DeleteSchedule", {"Name": "a/b", "GroupName": "g"}),
        ),
        (Wire("PUT", "/bucket/a/b?", "", b"x"), ("s3", "PutObject", {"Bucket": "bucket", "Key": "a/b"})),
        (
            Wire("POST", "/bucket?delete=", "", b"<Delete><Object><Key>a</Key></Object></Delete>"),
            ("s3", "DeleteObjects", {"Bucket": "bucket", "Keys": ["a"]}),
        ),
    ],
)
def test_requests_on_the_wire(wire, found):
    assert of_wire(wire) == found


def test_what_is_not_known_is_not_guessed():
    with pytest.raises(UnknownCall, match="dynamodb ExecuteStatement"):
        asked("dynamodb", "ExecuteStatement", {}, HERE)
    with pytest.raises(UnknownCall, match="ec2"):
        asked("ec2", "RunInstances", {}, HERE)
    with pytest.raises(UnknownRequest, match="Other"):
        of_wire(Wire("POST", "/", "Other.Call", json.dumps({}).encode()))
