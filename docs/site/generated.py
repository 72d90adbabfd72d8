"""The pages of the reference that are made from the code."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from docs.site import command_line, event_details, http_calls, library

FOLDER: Final = Path(__file__).resolve().parents[1] / "reference"
PAGES: Final[dict[str, Callable[[], str]]] = {
    "cli.md": command_line.page,
    "events.md": event_details.page,
    "http.md": http_calls.calls,
    "http-shapes.md": http_calls.shapes,
    **{f"library/{name}": partial(library.page, name) for name in library.CONTENTS},
}
"""What makes each page, by its name."""
