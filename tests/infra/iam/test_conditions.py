"""The evaluator, on the examples and rules of "Condition operators" and "Multivalued context keys"."""

import pytest

from tests.infra.iam.conditions import UnknownOperator, holds, matches


@pytest.mark.parametrize(
    ("operator", "wanted", "given", "result"),
    [
        ("StringEquals", "JohnDoe", "JohnDoe", True),
        ("StringEquals", "johndoe", "JohnDoe", False),
        ("StringEquals", ["a", "b"], "b", True),
        ("StringEquals", "a*", "abc", False),
        ("StringLike", "data_*", "data_x/y", True),
        ("StringLike", "dat?", "data", True),
        ("StringLike", "dat?", "dat", False),
        ("StringLike", "a.c", "abc", False),
        ("ArnLike", "arn:aws:sns:*:123:TOPIC*", "arn:aws:sns:eu:123:TOPIC-1", True),
        ("ArnEquals", "arn:aws:sns:*:123:TOPIC", "arn:aws:sns:eu:123:TOPIC", True),
        ("ArnLike", "arn:aws:*", "arn:aws:sns:eu:123:TOPIC", False),
        ("Bool", True, "true", True),
        ("Bool", "false", "true", False),
    ],
)
def test_one_value(operator, wanted, given, result):
    assert holds({operator: {"aws:Key": wanted}}, {"aws:key": given}) is result


@pytest.mark.parametrize(
    ("operator", "result"),
    [
        # "If the key is not present in the request context, the values do not match": false.
        ("StringEquals", False),
        ("StringLike", False),
        ("ArnLike", False),
        ("Bool", False),
        # ForAllValues: true as well without any such key in the request, as the guide warns.
        ("ForAllValues:StringEquals", True),
    ],
)
@pytest.mark.parametrize("context", [{}, {"aws:key": ()}], ids=["missing", "empty"])
def test_a_key_that_is_missing(operator, result, context):
    assert holds({operator: {"aws:Key": "x"}}, context) is result


@pytest.mark.parametrize(
    ("wanted", "context", "result"),
    [
        ("true", {}, True),
        ("false", {}, False),
        (True, {"aws:key": "x"}, False),
        (False, {"aws:key": "x"}, True),
        ("false", {"aws:key": ()}, False),
    ],
)
def test_null_asks_whether_a_key_is_missing(wanted, context, result):
    assert holds({"Null": {"aws:Key": wanted}}, context) is result


def test_variables_are_replaced():
    block = {"StringLike": {"s3:prefix": "${aws:username}/*"}}
    assert holds(block, {"aws:username": "Zoe", "s3:prefix": "Zoe/a"})
    assert not holds(block, {"aws:username": "*", "s3:prefix": "Zoe/a"})
    # "If the variable has no value in the request, the statement does not match"
    assert not holds(block, {"s3:prefix": "/a"})
    assert holds({"StringLike": {"k": "a${*}"}}, {"k": "a*"})
    assert not holds({"StringLike": {"k": "a${*}"}}, {"k": "ab"})


def test_an_operator_that_is_not_known_is_refused():
    for operator in ("StringNotLike", "ForAnyValue:StringEquals", "IpAddress"):
        with pytest.raises(UnknownOperator, match=operator):
            holds({operator: {"k": "v"}}, {"k": "v"})


def test_a_pattern_covers_slashes_and_colons():
    assert matches("a/b:c", "a*c")
    assert not matches("a/b:c\n", "a*c")
