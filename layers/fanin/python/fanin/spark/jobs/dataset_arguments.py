"""The arguments of a job that reads a dataset: how it is written down, and how much of it may be left out."""

from __future__ import annotations

import argparse

from fanin.errors import InvalidRequest
from fanin.spark.inputs.dialect import UTF8, Dialect
from fanin.spark.inputs.formats import DatasetFormat
from fanin.spark.runtime.rejects import RejectLimit


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that ``dialect_of`` reads, and ``--format``."""
    add = parser.add_argument
    add(
        "--format",
        type=DatasetFormat,
        choices=list(DatasetFormat),
        help="of the input; by default that of the table in the folder, or the one that its suffix names,"
        " or else parquet",
    )
    add(
        "--delimiter", metavar="TEXT", help=r"what divides the columns of CSV, \t for tabs (default: a comma)"
    )
    add("--encoding", default=UTF8, metavar="NAME", help="of CSV and JSON, such as ISO-8859-1 (%(default)s)")
    add(
        "--quote",
        default='"',
        metavar="C",
        help="character around values of CSV; empty if there is none (%(default)s)",
    )
    add("--escape", metavar="C", help="character before a quote within quotes (default: another quote)")
    add(
        "--multiline",
        action="store_true",
        help="a file of JSON is one object, or an array of them; line breaks within quotes of CSV are found"
        " without it",
    )


def dialect_of(options: argparse.Namespace) -> Dialect:
    """The dialect that the arguments say.

    Raises:
        InvalidRequest: an argument does not make sense.
    """
    delimiter = None if options.delimiter is None else options.delimiter.replace("\\t", "\t")
    return Dialect(delimiter, options.encoding, options.quote, options.escape, options.multiline)


def add_max_rejects(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``--max-rejects``."""
    parser.add_argument(
        "--max-rejects",
        type=_limit,
        default=RejectLimit(),
        metavar="N",
        help="most rows that may be left out, or a share such as 2.5%%; with more, it does nothing (default:"
        " any number but all rows). Repeats do not count",
    )


def _limit(text: str) -> RejectLimit:
    try:
        return RejectLimit.parse(text)
    except InvalidRequest as error:
        raise argparse.ArgumentTypeError(str(error)) from None
