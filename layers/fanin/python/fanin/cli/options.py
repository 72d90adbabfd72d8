"""Arguments and options that several commands have in common."""

from datetime import timedelta
from typing import Annotated, Any, TypeAlias

import typer

from fanin.cli.commands import option
from fanin.cli.parsing import Pair, ordinals, pair, target
from fanin.domain.batch import ChildFailures, OnFailure
from fanin.domain.failures import Keep
from fanin.domain.ids import parse_batch_id
from fanin.domain.redrives import OrdinalRange
from fanin.domain.targets import Target
from fanin.wire.typed import moment, percents, span


def spans(text: str, shown: str | bool = True, default: Any = None) -> Any:
    """An option for a duration; its help, and its default also as people write it."""
    return option(text, default=default, parser=span, metavar="SPAN", show_default=shown)


def pairs(text: str, *names: str, default: Any = None, metavar: str = "NAME=VALUE") -> Any:
    """An option for names with values, each given by an option of its own; its help, and its names."""
    return option(f"{text}; may be repeated.", *names, default=default, parser=pair, metavar=metavar)


BatchId: TypeAlias = Annotated[
    int, typer.Argument(parser=parse_batch_id, metavar="BATCH", help="Id of the batch.")
]
PageSize: TypeAlias = Annotated[
    int, typer.Option("--limit", min=1, max=1_000, help="Most results on one page.")
]
Cursor: TypeAlias = Annotated[str | None, typer.Option(help="Start where the previous page ended.")]
EveryPage: TypeAlias = Annotated[bool, typer.Option("--all", help="List all pages.")]
OfErrors: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--error",
        metavar="TEXT",
        help="Only failures with this error, or one that begins like it; numbers, ids and quoted texts are"
        " ignored. `fanin failures --by-error` lists them. May be repeated.",
    ),
]
OfOrdinals: TypeAlias = Annotated[
    list[OrdinalRange] | None,
    typer.Option(
        "--range",
        parser=ordinals,
        metavar="A..B",
        help="Only items with ordinals A <= i < B; may be repeated.",
    ),
]

UserKey: TypeAlias = Annotated[str, typer.Option(help="Your own name for the batch; its events contain it.")]
Deadline: TypeAlias = Annotated[
    Any,  # a timedelta or ms since the epoch; Typer takes no union
    typer.Option(
        parser=moment, metavar="TIME", help="Deadline: a duration from now (15m, 2h), or a time in RFC 3339."
    ),
]
Milestones: TypeAlias = Annotated[
    Any,  # a tuple of percents, of any length
    typer.Option(
        parser=percents,
        metavar="PERCENTS",
        help="Tell at these percents of its items how far it is, such as 50,90; none for no more.",
    ),
]
StallAfter: TypeAlias = Annotated[
    timedelta | None,
    spans("Report a stall after this long without activity, such as 15m; 0 for never.", default=...),
]
Limit: TypeAlias = Annotated[
    int | None, typer.Option("--limit", help="Most items that may be pending at a time.")
]
Metadata: TypeAlias = Annotated[
    list[Pair] | None, pairs("Metadata, which events contain", "--meta", default=..., metavar="KEY=VALUE")
]
WhatOnFailure: TypeAlias = Annotated[
    OnFailure,
    typer.Option("--on-failure", help="Whether an item that fails is done, or held until it is released."),
]
OfChildren: TypeAlias = Annotated[
    ChildFailures,
    typer.Option("--child-failures", help="Whether an item fails with the failures of a batch nested in it."),
]
ToleratedFailures: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--tolerate-failures",
        metavar="N|P%",
        help="Cancel the batch if more items fail than this: a number, or a share of those that are done.",
    ),
]
MinSample: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--min-sample", metavar="N", help="Items that are done before a share counts.", show_default="100"
    ),
]

KeepOption: TypeAlias = Annotated[
    Keep | None,
    typer.Option(
        "--keep", help="Keep the messages of failed items, or their reasons alone.", show_default="message"
    ),
]

TotalNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--total",
        metavar="NAME",
        help="Sum up this number over the items that are done, such as rows; up to four.",
    ),
]
TotalValues: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--total", metavar="NAME=NUMBER", help="What the item adds to a total of its batch; may be repeated."
    ),
]
OnEndOption: TypeAlias = Annotated[
    list[Target] | None,
    typer.Option(
        parser=target,
        metavar="[WHEN:]TYPE=WHERE",
        help="Whom to call back at the end: sqs=URL, webhook=URL, step_functions=TOKEN or"
        " durable_callback=ID, with complete: or failed: in front, or before the end with failing:, waiting:"
        " or progress:; up to five.",
    ),
]

Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
FailOnFailures: TypeAlias = Annotated[
    bool, typer.Option("--fail-on-failures", help="Exit with 1 if items failed, even if all are done.")
]
