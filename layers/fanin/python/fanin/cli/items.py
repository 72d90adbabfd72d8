"""Commands on items: ``fanin ack`` and ``fanin fail``."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import typer

from fanin.cli import parsing
from fanin.cli.commands import argument, option
from fanin.cli.exits import code_of
from fanin.cli.options import TOTAL_VALUES
from fanin.cli.session import Session, session, with_stdin
from fanin.domain.marks import Count, Done, Failure, ItemRange, Mark, Marked, Receipt
from fanin.errors import FaninError, PartlyMarked
from fanin.wire.marks import MARKED

app = typer.Typer()

ITEMS = argument("Item ids; - reads them from stdin, one a line.", default=None, metavar="ITEM...")
RANGES = option(
    "All items of a group, or those with FROM <= i < TO, as `fanin missing` prints them; may be repeated.",
    "--range",
    parser=parsing.item_range,
    metavar="BATCH:GROUP[:FROM..TO]",
)


@app.command()
def ack(
    ctx: typer.Context,
    items: list[str] | None = ITEMS,
    ranges: list[ItemRange] | None = RANGES,
    counts: list[Count] | None = option(
        "Count N items of an estimated batch as done; may be repeated.",
        "--count",
        parser=parsing.count,
        metavar="BATCH=N",
    ),
    total: list[str] | None = TOTAL_VALUES,
) -> None:
    """Mark items done; an item may be acknowledged more than once.

    --range b:g:0..10 means the first ten items of group b:g, --range b:g:10.. all others. A line of stdin
    may have an item id, a tab, and what this item adds to totals: rows=812 cents=-5.
    """
    _need(items, ranges, counts)
    run = session(ctx)
    named = _done(with_stdin(items or ()), _for_one(items, total))
    _answer(run, lambda: run.tracker.ack(chain(named, ranges or (), counts or ())))


@app.command()
def fail(
    ctx: typer.Context,
    items: list[str] | None = ITEMS,
    ranges: list[ItemRange] | None = RANGES,
    reason: str = option("Why the items failed; `fanin failures` lists it.", default=""),
    total: list[str] | None = TOTAL_VALUES,
) -> None:
    """Mark items failed; they count as done, unless their batch holds them.

    A line of stdin may have an item id, a tab and a reason for this item; after another tab, what this item
    adds to totals: rows=812 cents=-5.
    """
    _need(items, ranges)
    run = session(ctx)
    totals = _for_one(items, total, ", a tab, a reason")
    lines = chain(with_stdin(items or ()), *map(parsing.items, ranges or ()))
    _answer(run, lambda: run.tracker.fail(_failures(lines, reason, totals)))


def _need(*given: Sequence[object] | None) -> None:
    if not any(given):
        raise typer.BadParameter("no items are given; pass item ids, or - to read them from stdin")


def _for_one(items: Sequence[str] | None, total: Sequence[str] | None, reason: str = "") -> dict[str, int]:
    """What --total says of the only item; ``reason`` is named if lines have one before their totals."""
    totals = parsing.totals(total or ())
    if totals and (items is None or len(items) != 1 or items[0] == "-"):
        raise typer.BadParameter(
            "--total goes with a single item id; for several, pass - and write lines to stdin, each of an"
            f" item id{reason}, a tab and rows=812"
        )
    return totals


def _done(lines: Iterable[str], totals: dict[str, int]) -> Iterator[str | Done]:
    """The items; those with values for the totals of their batches as ``Done``."""
    for line in lines:
        item, _, said = line.partition("\t")
        brought = parsing.totals(said.split()) or totals
        yield Done(item, brought) if brought else item


def _failures(lines: Iterable[str], reason: str, totals: dict[str, int]) -> Iterator[Failure]:
    for line in lines:
        item, _, said = line.partition("\t")
        own, _, brought = said.partition("\t")
        yield Failure(item, own or reason, totals=parsing.totals(brought.split()) or totals)


def _answer(run: Session, call: Callable[[], Sequence[Receipt]]) -> None:
    """Show the receipts, and why each of the other marks is not settled."""
    from fanin.cli.tables import receipts_table

    unsettled: Sequence[tuple[Mark, FaninError]] = ()
    try:
        receipts = call()
    except PartlyMarked as partly:
        receipts = partly.receipts
        unsettled = [*partly.left, *partly.unknown, *partly.refused]
    run.answer(MARKED.encode(Marked(receipts)), receipts_table(receipts))
    for mark, error in unsettled:
        named = getattr(mark, "item", None) or getattr(mark, "group", mark)
        run.explain(type(error)(f"{named}: {error}"))
    if unsettled:
        raise typer.Exit(code_of(unsettled[0][1]))
