"""The evaluator, on the rules of "Policy evaluation logic" of the IAM User Guide."""

import pytest

from tests.infra.iam.policies import Decision, Request, decide, evaluate

QUEUE = "arn:aws:sqs:eu-west-1:111122223333:orders"
ROLE = "arn:aws:iam::111122223333:role/consumer"
SEND = Request("sqs:SendMessage", QUEUE, principal=ROLE)


def statement(effect: str = "Allow", action="sqs:SendMessage", resource=QUEUE, **more):
    return {"Effect": effect, "Action": action, "Resource": resource, **more}


def test_a_denial_wins_wherever_it_stands():
    for order in (("Allow", "Deny"), ("Deny", "Allow")):
        assert evaluate([statement(effect) for effect in order], SEND) is Decision.EXPLICIT_DENY


@pytest.mark.parametrize(
    ("action", "result"),
    [
        ("sqs:*", True),
        ("SQS:sendmessage", True),
        (["sqs:ReceiveMessage", "sqs:Send*"], True),
        ("sqs:SendMessageBatch", False),
        ("*", True),
    ],
)
def test_actions(action, result):
    assert (evaluate([statement(action=action)], SEND) is Decision.ALLOW) is result


@pytest.mark.parametrize(
    ("resource", "result"),
    [
        ("*", True),
        ("arn:aws:sqs:*:*:orders", True),
        ("arn:aws:sqs:eu-west-1:111122223333:ord*", True),
        ("arn:aws:sqs:eu-west-1:111122223333:Orders", False),
        ("arn:aws:sns:eu-west-1:111122223333:orders", False),
        ([QUEUE + "-dead", QUEUE], True),
        ("arn:aws:sqs", True),
        ("arn:aws:sns", False),
    ],
)
def test_resources(resource, result):
    assert (evaluate([statement(resource=resource)], SEND) is Decision.ALLOW) is result


def test_within_an_account_the_policy_of_the_resource_is_enough():
    named = [statement(Principal={"AWS": ROLE})]
    assert decide(SEND, [], named) is Decision.ALLOW
    # For another principal, the statement says nothing
    other = Request("sqs:SendMessage", QUEUE, principal="events.amazonaws.com")
    assert decide(other, [], named) is Decision.IMPLICIT_DENY
    assert decide(other, [], [statement(Principal={"Service": "events.amazonaws.com"})]) is Decision.ALLOW


def test_a_resource_that_denies_denies_whoever_is_allowed():
    https_only = [
        statement(
            "Deny", "sqs:*", Principal={"AWS": "*"}, Condition={"Bool": {"aws:SecureTransport": "false"}}
        )
    ]
    plain = Request("sqs:SendMessage", QUEUE, {"aws:SecureTransport": "false"}, ROLE)
    secure = Request("sqs:SendMessage", QUEUE, {"aws:SecureTransport": "true"}, ROLE)
    assert decide(plain, [statement()], https_only) is Decision.EXPLICIT_DENY
    assert decide(secure, [statement()], https_only) is Decision.ALLOW
