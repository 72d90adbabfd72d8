"""Targets: which ends they are told of, and what a reader may see of them.

URLs and addresses of webhooks: nothing that leads into somebody's network is accepted.
"""

import pytest

from fanin.domain.targets import (
    EVERY_HOST,
    FIELD,
    Target,
    TargetState,
    TargetType,
    WebhookUrl,
    When,
    is_public,
    parse_url,
)
from fanin.errors import InvalidRequest


@pytest.mark.parametrize(
    ("when", "succeeded", "wanted"),
    [
        (When.ANY, True, True),
        (When.ANY, False, True),
        (When.COMPLETE, True, True),
        (When.COMPLETE, False, False),
        (When.FAILED, True, False),
        (When.FAILED, False, True),
    ],
)
def test_a_target_hears_of_the_ends_that_it_asked_for(when, succeeded, wanted):
    assert Target(TargetType.SQS, when).wants(succeeded) is wanted


def test_what_is_told_early_is_told_of_no_end():
    early = [when for when in When if when.early]

    assert early == [When.FAILING, When.WAITING, When.PROGRESS]
    assert not any(Target(TargetType.SQS, when).wants(end) for when in early for end in (True, False))


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (Target(TargetType.STEP_FUNCTIONS, task_token="A" * 600 + "wxyz"), "…wxyz"),
        (Target(TargetType.STEP_FUNCTIONS, task_token="A" * 5), "…"),
        (Target(TargetType.DURABLE_CALLBACK, callback_id="B" * 60 + "abcd"), "…abcd"),
        (Target(TargetType.SQS, queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/next"), "next"),
        (
            Target(TargetType.WEBHOOK, url="https://hooks.example.com/T0/secret?key=1"),
            "https://hooks.example.com/…",
        ),
    ],
)
def test_where_a_target_points_is_shown_masked(target, shown):
    assert target.to == shown
    # And a log that prints the value itself shows nothing either
    secret = next(value for name in FIELD.values() if (value := getattr(target, name)))
    assert secret not in repr(target)


def test_what_is_settled_needs_no_more_jobs():
    assert {state for state in TargetState if state.settled} == {TargetState.DELIVERED, TargetState.SKIPPED}


def test_each_type_says_where_it_is_in_one_field():
    assert set(FIELD) == set(TargetType)
    assert len(set(FIELD.values())) == len(FIELD)


HOSTS = "hooks.example.com, *.example.org, api.example.net:8443, localhost:*"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://hooks.example.com", WebhookUrl("hooks.example.com", 443, "/")),
        ("https://HOOKS.example.com:443/a?b=c&d", WebhookUrl("hooks.example.com", 443, "/a?b=c&d")),
        ("https://a.b.example.org/x", WebhookUrl("a.b.example.org", 443, "/x")),
        ("https://api.example.net:8443/x", WebhookUrl("api.example.net", 8443, "/x")),
        ("https://localhost:5/x", WebhookUrl("localhost", 5, "/x")),
        ("https://0xcafe.example.org/x", WebhookUrl("0xcafe.example.org", 443, "/x")),
    ],
)
def test_a_url_of_an_allowed_host_is_read(url, place):
    assert parse_url(url, HOSTS) == place


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://hooks.example.com/x", "https://"),
        ("hooks.example.com/x", "https://"),
        ("https://evil.example/x", "webhook_hosts"),
        ("https://example.org/x", "webhook_hosts"),
        ("https://evilexample.org/x", "webhook_hosts"),
        ("https://hooks.example.com.evil.example/x", "webhook_hosts"),
        ("https://hooks.example.com:8443/x", "webhook_hosts"),
        ("https://api.example.net/x", "webhook_hosts"),
        ("https://user@hooks.example.com/x", "user name"),
        ("https://user:pass@hooks.example.com/x", "user name"),
        ("https://hooks.example.com@evil.example/x", "user name"),
        ("https://hooks.example.com\\@evil.example/x", "backslash"),
        ("https://hooks.example.com/ x", "visible"),
        ("https://hooks.example.com/x\r\nHost: evil", "visible"),
        ("https://hooks.exämple.com/x", "visible"),
        ("https://hooks.example.com/x#part", "fragment"),
        ("https://127.0.0.1/x", "IP address"),
        ("https://[::1]/x", "IP address"),
        ("https://[::ffff:127.0.0.1]/x", "IP address"),
        ("https://2130706433/x", "IP address"),
        ("https://127.1/x", "IP address"),
        ("https://0x7f000001/x", "IP address"),
        ("https://0xA9.0xFE.0xA9.0xFE/x", "IP address"),
        ("https://" + "a." * 122 + "example.com/x", "must name its host"),
        ("https://localhost:0/x", "port 0"),
        ("https://hooks.example.com:port/x", "cannot be read"),
        ("https://hooks.example.com:99999/x", "cannot be read"),
        ("https://[/x", "cannot be read"),
        ("https:///x", "must name its host"),
        ("https://hooks.example.com./x", "must name its host"),
        ("", "1 to 2048"),
        ("https://hooks.example.com/" + "x" * 2_048, "1 to 2048"),
    ],
)
def test_any_other_url_is_refused_and_the_message_says_why(url, why):
    with pytest.raises(InvalidRequest, match=why) as refused:
        parse_url(url, HOSTS)
    assert "pass" not in str(refused.value).replace("password", "")


def test_without_a_setting_no_host_is_allowed_and_in_memory_each_is():
    with pytest.raises(InvalidRequest, match="not allowed"):
        parse_url("https://hooks.example.com/x", "")
    assert parse_url("https://any.example:81/x", EVERY_HOST).port == 81


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"])
def test_public_addresses_are_accepted(address):
    assert is_public(address)


REFUSED = [
    *("127.0.0.1", "127.9.9.9", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("169.254.169.254", "169.254.170.2", "100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "239.1.1.1"),
    *("240.0.0.1", "255.255.255.255", "192.0.0.8"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1"),
    *("::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:1.1.1.1", "::127.0.0.1", "fec0::1"),
    *("64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    *(
        "2d00::1",
        "2fff::1",
        "3ffe::1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "::ffff:0:7f00:1",
        "100::1",
        "2001:2::1",
        "192.88.99.1",
    ),
]


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_lead_inside_are_refused(address):
    assert not is_public(address)


def test_a_stack_on_this_machine_accepts_this_machine_and_nothing_else_inside():
    accepted = {address for address in REFUSED if is_public(address, loopback=True)}
    assert accepted == {"127.0.0.1", "127.9.9.9", "::1"}
