"""The arguments of a job that reads a dataset: how it is written down, and how much may be left out."""

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import TypeVar

from fanin.domain.totals import check_names
from fanin.errors import InvalidRequest
from fanin.spark.inputs.formats import UTF8, Dataset, DatasetFormat, Dialect
from fanin.spark.runtime.rejects import RejectLimit

_T = TypeVar("_T")


def argument(parse: Callable[[str], _T]) -> Callable[[str], _T]:
    """Make the ``type`` of an argument, so that argparse says why its text was refused.

    Args:
        parse: reads the text; raises ``InvalidRequest``.
    """

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


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``dataset_of`` reads, and ``--format``."""
    add = parser.add_argument
    add(
        "--format",
        type=DatasetFormat,
        choices=list(DatasetFormat),
        help="of the input; table is one of the catalog, by its name (default: what the folder is, or what"
        " its suffix says, or else parquet)",
    )
    add(
        "--delimiter",
        metavar="TEXT",
        help=r"what divides the columns of CSV: ';', or '\t' for tabs (default: a comma)",
    )
    add(
        "--encoding",
        default=UTF8,
        metavar="NAME",
        help="of CSV and JSON: ISO-8859-1, windows-1252, UTF-16 (default: %(default)s)",
    )
    add(
        "--quote",
        default='"',
        metavar="C",
        help="character around values of CSV; '' if there is none (default: %(default)s)",
    )
    add(
        "--escape", metavar="C", help="character before a quote within quotes of CSV (default: another quote)"
    )
    add(
        "--multiline",
        action="store_true",
        help="each file of JSON is one object, or an array of them, instead of an object on each line; CSV"
        " does not need it",
    )


def dialect_of(options: argparse.Namespace) -> Dialect:
    """The dialect that the arguments say."""
    named = {one.name: getattr(options, one.name) for one in fields(Dialect)}
    if options.delimiter is not None:
        named["delimiter"] = options.delimiter.replace("\\t", "\t")
    return Dialect(**named)


def dataset_of(options: argparse.Namespace, schema: str | None = None) -> Dataset:
    """The dataset that the arguments name."""
    return Dataset(options.input, options.format, schema=schema, **vars(dialect_of(options)))


def add_max_rejects(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``--max-rejects``."""
    parser.add_argument(
        "--max-rejects",
        type=argument(RejectLimit.parse),
        default=RejectLimit(),
        metavar="N",
        help="most rows that may be left out, 100 or 2.5%%; with more, the job writes the rejects and nothing"
        " else, and ends with 1. Repeats do not count (default: any number but all rows)",
    )
