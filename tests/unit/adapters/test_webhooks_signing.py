"""Signatures, checked with the library that receivers use."""

from __future__ import annotations

import base64
import time

import pytest
from standardwebhooks import Webhook

from fanin.adapters.webhooks import signed_headers
from fanin.errors import NotConfigured

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def test_a_receiver_can_verify_what_is_signed() -> None:
    body = '{"total":"3 €"}'.encode()

    headers = signed_headers(SECRET, "7.complete", int(time.time()), body)

    assert Webhook(SECRET).verify(body, dict(headers)) == {"total": "3 €"}
    assert headers["webhook-id"] == "7.complete"


def test_the_signature_is_that_of_the_specification() -> None:
    # The example of Standard Webhooks
    example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = signed_headers(example, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_the_secret_that_the_stack_generates_is_one() -> None:
    """44 letters and digits, without the prefix."""
    generated = "aB3" * 14 + "xy"
    headers = signed_headers(generated, "1", int(time.time()), b"{}")
    Webhook(f"whsec_{generated}").verify(b"{}", dict(headers))


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "not base64!"])
def test_a_weak_or_malformed_secret_is_refused(secret: str) -> None:
    with pytest.raises(NotConfigured, match="whsec_"):
        signed_headers(secret, "1", 1, b"")
