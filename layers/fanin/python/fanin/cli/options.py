"""Arguments and options that several commands have in common."""

from typing import Any

from fanin.cli.commands import argument, flag, option
from fanin.cli.parsing import ordinals, pair, target
from fanin.domain.batch import ChildFailures, OnFailure
from fanin.domain.ids import parse_batch_id
from fanin.wire.typed import moment, percents, span


def spans(text: str, shown: str | bool = True, default: Any = None) -> Any:
    """An option for a duration; its help, and its default also as people write it."""
    return option(text, default=default, parser=span, metavar="SPAN", show_default=shown)


def pairs(text: str, *names: str, metavar: str = "NAME=VALUE") -> Any:
    """An option for names with values, each given by an option of its own; its help, and its names."""
    return option(f"{text}; may be repeated.", *names, parser=pair, metavar=metavar)


BATCH_ID = argument("Id of the batch.", parser=parse_batch_id, metavar="BATCH")
PAGE_SIZE = option("Most results on one page.", default=100, min=1, max=1_000)
CURSOR = option("Start where the previous page ended.")
EVERY_PAGE = flag("List all pages.", "--all")
ERRORS = option(
    "Only failures with this error, or one that begins like it; numbers, ids and quoted texts are"
    " ignored. `fanin failures --by-error` lists them. May be repeated.",
    "--error",
    metavar="TEXT",
)
ORDINALS = option(
    "Only items with ordinals A <= i < B; may be repeated.", "--range", parser=ordinals, metavar="A..B"
)

USER_KEY = option("Your own name for the batch; its events contain it.", default="")
DEADLINE = option(
    "Deadline: a duration from now (15m, 2h), or a time in RFC 3339.", parser=moment, metavar="TIME"
)
MILESTONES = option(
    "Tell at these percents of its items how far it is, such as 50,90; none for no more.",
    parser=percents,
    metavar="PERCENTS",
)
STALL_AFTER = spans("Report a stall after this long without activity, such as 15m; 0 for never.")
LIMIT = option("Most items that may be pending at a time.")
METADATA = pairs("Metadata, which events contain", "--meta", metavar="KEY=VALUE")
ON_FAILURE = option(
    "Whether an item that fails is done, or held until it is released.", default=OnFailure.DONE
)
CHILD_FAILURES = option(
    "Whether an item fails with the failures of a batch nested in it.", default=ChildFailures.FAIL
)
TOLERATED_FAILURES = option(
    "Cancel the batch if more items fail than this: a number, or a share of those that are done.",
    metavar="N|P%",
)
MIN_SAMPLE = option("Items that are done before a share counts.", metavar="N", show_default="100")

KEEP = option("Keep the messages of failed items, or their reasons alone.", show_default="message")

TOTAL_NAMES = option(
    "Sum up this number over the items that are done, such as rows; up to four.", "--total", metavar="NAME"
)
TOTAL_VALUES = option(
    "What the item adds to a total of its batch; may be repeated.", "--total", metavar="NAME=NUMBER"
)
ON_END = option(
    "Whom to call back at the end: sqs=URL, webhook=URL, step_functions=TOKEN or"
    " durable_callback=ID, with complete: or failed: in front, or before the end with failing:, waiting:"
    " or progress:; up to five.",
    parser=target,
    metavar="[WHEN:]TYPE=WHERE",
)

YES = flag("Do it without asking.", "--yes", "-y")
FAIL_ON_FAILURES = flag("Exit with 1 if items failed, even if all are done.", "--fail-on-failures")
