"""The calls of the directory of instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fanin.domain.directory import Register, Registration, Registrations


class Directory(Protocol):
    """The directory: which instances listen to which topics, and on which queues."""

    def register(self, request: Register) -> Registration:
        """Register an instance, renew its lease, or move it to another channel or other attributes.

        Raises:
            InvalidRequest: a name, an attribute or the lease is out of bounds.
            ChannelRefused: the queue does not exist, or does not carry the tag.
            Throttled: other calls keep changing the same registration; try again.
        """
        ...

    def deregister(self, topic: str, name: str) -> bool:
        """End a registration; False if it did not exist, which is not an error."""
        ...

    def get(self, topic: str, name: str) -> Registration:
        """Read a registration.

        Raises:
            NotRegistered: no instance is registered by that name, or its lease is over.
        """
        ...

    def page(
        self,
        topic: str,
        *,
        attributes: Mapping[str, str] | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Registrations:
        """List a topic by name, only those that have all the attributes.

        Raises:
            InvalidRequest: the cursor is not from this listing.
        """
        ...

    def members(self, topic: str, attributes: Mapping[str, str] | None = None) -> Iterator[Registration]:
        """All registrations of a topic that have all the attributes, by name, read a page at a time."""
        ...
