"""A secret of Secrets Manager, read when it is needed and remembered for some minutes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from botocore.exceptions import ClientError

from fanin.adapters.aws import client_factory, error_code, once, translated
from fanin.app.ports.system import Clock
from fanin.errors import NotConfigured

REMEMBERED_MS: Final = 300_000
"""How long a value is used before it is read again, so that a rotation takes effect."""


class Secret:
    """The current value of one secret.

    Args:
        arn: gives the ARN of the secret, at each read; what it raises is raised there.
        clock: tells the age of the value.
        client: makes the client, when first used.
    """

    def __init__(self, arn: Callable[[], str], clock: Clock, client: Callable[[], Any] | None = None) -> None:
        self._arn = arn
        self._clock = clock
        self._client = once(client or client_factory("secretsmanager"))
        self._value: tuple[int, str] | None = None
        self._lock = Lock()

    def __call__(self) -> str:
        """The value.

        Raises:
            NotConfigured: no secret is named, there is none of that name, or its value is no text or cannot
                be had, such as while it is being deleted.
            AccessDenied: this process may not read it.
        """
        with self._lock:
            now = self._clock.now()
            if self._value is None or now - self._value[0] >= REMEMBERED_MS:
                self._value = now, self._read()
            return self._value[1]

    def _read(self) -> str:
        try:
            with translated():
                answer = self._client().get_secret_value(SecretId=self._arn())
        except ClientError as error:
            raise NotConfigured(
                f"the secret cannot be read ({error_code(error)}); check that it is not being deleted, and"
                " that its encryption key is enabled"
            ) from error
        value: str | None = answer.get("SecretString")
        if value is None:
            raise NotConfigured("the secret has a binary value; put a text there")
        return value
