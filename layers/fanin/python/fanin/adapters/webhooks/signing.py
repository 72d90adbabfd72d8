"""Signatures of webhooks, as Standard Webhooks 1.0 says (https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final

from fanin.errors import NotConfigured

PREFIX: Final = "whsec_"
LEAST: Final = 24
"""Bytes that a secret has at least."""


def signed_headers(secret: str, message_id: str, at: int, body: bytes) -> Mapping[str, str]:
    """The headers with which a receiver checks that a request is the service's, and recent.

    Args:
        secret: base64, with or without the prefix ``whsec_``.
        message_id: the same for every attempt, so that a receiver can drop a repeat.
        at: seconds since the epoch, of this attempt.
        body: of the request.

    Raises:
        NotConfigured: the secret is not base64 of 24 bytes or more.
    """
    content = b".".join((message_id.encode(), str(at).encode(), body))
    signature = base64.b64encode(hmac.digest(_key(secret), content, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{signature}",
    }


def _key(secret: str) -> bytes:
    text = secret.strip().removeprefix(PREFIX)
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < LEAST:
        raise NotConfigured(
            f"the secret of webhooks must be {PREFIX} and base64 of at least {LEAST} bytes; put one into the"
            " secret that the stack created"
        )
    return key
