"""The catalog: real airports, some of them malformed on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import airportsdata

from examples.catalog.consumer.airports import HUBS
from fanin import Message

SPOILT_EVERY = 500  # 0.2 % of the rows
AGAIN_EVERY = 20  # 5 % of the messages are sent twice
AGAIN_AT = 10  # so that no malformed row is sent twice


@dataclass(frozen=True)
class Catalog:
    """Rows to import.

    Attributes:
        rows: one dictionary for each airport: column → text.
    """

    rows: list[dict[str, str]]

    @classmethod
    def load(cls, count: int | None) -> Catalog:
        """Take airports from all over the world.

        Args:
            count: how many; None takes all 28,000.
        """
        airports = list(airportsdata.load().values())
        if count is not None:
            airports = airports[:: max(1, len(airports) // count)][:count]
        rows = [{column: str(value) for column, value in airport.items()} for airport in airports]
        for number, row in enumerate(rows):
            if number % SPOILT_EVERY == 0:
                row.update(
                    ({"icao": "?"}, {"lat": "912.4"}, {"elevation": "high"})[number // SPOILT_EVERY % 3]
                )
        return cls(rows)

    @property
    def spoilt(self) -> int:
        return len(range(0, len(self.rows), SPOILT_EVERY))

    @property
    def again(self) -> int:
        return len(range(AGAIN_AT, len(self.rows), AGAIN_EVERY))

    def totals(self, *, spoilt: bool) -> dict[str, int]:
        """Bytes of the messages, and rows that are hubs; of all rows, or of those that are not spoilt."""
        rows = [row for number, row in enumerate(self.rows) if spoilt or number % SPOILT_EVERY]
        return {
            "bytes": sum(len(Message(row).text.encode()) for row in rows),
            "hubs": sum(row["iata"] in HUBS for row in rows),
        }

    def messages(self) -> Iterator[Message]:
        """One message for each row, with the number of the row as an attribute."""
        for number, row in enumerate(self.rows):
            yield Message(row, attributes={"row": number})


def comes_again(number: int) -> bool:
    """Whether the message of a row is sent twice."""
    return number % AGAIN_EVERY == AGAIN_AT
