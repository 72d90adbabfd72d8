"""The recipients of a scatter, listed once from its topic.

The chunks of a scatter form a chain. Each chunk is written once, by the first process that gets there, and
says where in the topic it ends; the next chunk begins there. A topic is read by ascending name. So however
many processes list the same scatter, crash or repeat themselves while instances come and go, they all find
the same recipients, each once.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice

from fanin.app.directory.service import DirectoryService
from fanin.app.ports import Ports
from fanin.app.scatters import records as scatter_records
from fanin.app.scatters.records import Chunk, put_chunk, read_chunk
from fanin.domain import limits
from fanin.domain.batch import Batch
from fanin.domain.paging import pages
from fanin.domain.scatter import Recipient, Scatter
from fanin.errors import RequestTooLarge


class RecipientList:
    """Writes the recipients of scatters to a topic.

    Args:
        ports: the directory, and the records of batches.
    """

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._directory = DirectoryService(ports)

    def resume(self, batch: Batch, scatter: Scatter, *, until: int, most: int | None = None) -> int | None:
        """List recipients from where the listing stopped.

        Args:
            batch: of the scatter; its row need not be written yet.
            scatter: names the topic.
            until: when to stop, ms. A chunk is listed even if it is later, so that a chain of calls ends.
            most: how many chunks to list at most; None for no bound.

        Returns:
            The number of recipients; None if there may be more than those listed so far.

        Raises:
            RequestTooLarge: the topic has more recipients than a scatter may have.
            Throttled: a table is overloaded; resume later.
        """
        first, last = self._place(batch)
        number, stop = first, None if most is None else first + most
        found = self._after(scatter, last)
        while last is None or not last.end:
            if number == stop or (number > first and self._ports.clock.now() >= until):
                return None
            taken = list(islice(found, scatter_records.CHUNK))
            page = taken[-1][1] if taken else None
            chunk = Chunk(tuple(to for to, _ in taken), page, len(taken) < scatter_records.CHUNK)
            if scatter_records.span(number).start + len(taken) > limits.MAX_RECIPIENTS:
                raise RequestTooLarge(
                    f"topic {scatter.topic!r} has over {limits.MAX_RECIPIENTS} recipients;"
                    " choose fewer of them with where"
                )
            last, mine = put_chunk(self._ports.records, batch, number, chunk)
            if not mine:
                found = self._after(scatter, last)
            number += 1
        return scatter_records.span(number - 1).start + len(last.recipients)

    def _place(self, batch: Batch) -> tuple[int, Chunk | None]:
        """The number of the first chunk that is not written, and the chunk before it.

        Chunks are written in order, so a binary search finds the end.
        """

        def missing(number: int) -> bool:
            return read_chunk(self._ports.records, batch, number) is None

        if missing(0):
            return 0, None
        most = scatter_records.chunks(limits.MAX_RECIPIENTS).stop + 1
        number = bisect_left(range(most), True, lo=1, key=missing)
        return number, read_chunk(self._ports.records, batch, number - 1)

    def _after(self, scatter: Scatter, last: Chunk | None) -> Iterator[tuple[Recipient, str | None]]:
        """The members of the topic after a chunk, each with the cursor of its page."""
        cursor = last.page if last else None
        name = last.recipients[-1].name if last and last.recipients else ""
        options = {"attributes": scatter.where, "cursor": cursor, "limit": limits.MAX_PAGE}
        for page in pages(self._directory.page, scatter.topic or "", **options):
            for one in page.registrations:
                if one.name > name:
                    yield Recipient(one.name, one.channel), cursor
            cursor = page.cursor
