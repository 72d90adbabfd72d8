"""Options of jobs; and those that say how a dataset is written down, and how much may be left out."""

import argparse
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import Any, TypeVar

from fanin.domain.totals import check_names
from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import UTF8, Dataset, DatasetFormat, Dialect
from fanin.spark.runtime.rejects import RejectLimit

_T = TypeVar("_T")


def argument(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Make the ``type`` of an argument, so that argparse says why ``parse`` raised ``InvalidRequest``."""

    def read(text: str) -> _T:
        try:
            return parse(text)
        except InvalidRequest as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


@argument
def names_of_totals(text: str) -> tuple[str, ...]:
    """The value of ``--totals``: at most four different names of totals, divided by commas."""
    return check_names([name.strip() for name in text.split(",")])


def option(parser: Any, usage: str, about: str, **how: Any) -> None:
    """Add an option to a parser, or to a group of one, by how it is written: ``--queue URL``."""
    name, _, metavar = usage.partition(" ")
    parser.add_argument(name, help=about, **({"metavar": metavar} if metavar else {}), **how)


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``dataset_of`` reads, except ``--input``; and ``--max-rejects``."""
    add = partial(option, parser)
    add(
        "--format",
        "of the input; table is one of the catalog, by its name (default: what the folder is, or what"
        " its suffix says, or else parquet)",
        type=DatasetFormat,
        choices=list(DatasetFormat),
    )
    add("--delimiter TEXT", r"what divides the columns of CSV: ';', or '\t' for tabs (default: a comma)")
    about = "of CSV and JSON: ISO-8859-1, windows-1252, UTF-16 (default: %(default)s)"
    add("--encoding NAME", about, default=UTF8)
    add(
        "--quote C", "character around values of CSV; '' if there is none (default: %(default)s)", default='"'
    )
    add("--escape C", "character before a quote within quotes of CSV (default: another quote)")
    add(
        "--multiline",
        "each file of JSON is one object, or an array of them, instead of an object on each line; CSV"
        " does not need it",
        action="store_true",
    )
    add(
        "--max-rejects N",
        "most rows that may be left out, 100 or 2.5%%; with more, the job writes the rejects and nothing"
        " else, and ends with 1. Repeats do not count (default: any number but all rows)",
        type=argument(RejectLimit.of),
        default=RejectLimit(),
    )


def dialect_of(options: argparse.Namespace) -> Dialect:
    named = {one.name: getattr(options, one.name) for one in fields(Dialect)}
    if options.delimiter is not None:
        named["delimiter"] = options.delimiter.replace("\\t", "\t")
    return Dialect(**named)


def dataset_of(options: argparse.Namespace, schema: str | None = None) -> Dataset:
    return Dataset(options.input, options.format, schema=schema, **vars(dialect_of(options)))
