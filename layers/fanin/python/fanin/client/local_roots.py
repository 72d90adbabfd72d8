"""Which folders had a local stack, so that clients find it from any folder.

They are in ``fanin/local.json`` in the user's state folder: ``$XDG_STATE_HOME``, by default
``~/.local/state`` (https://specifications.freedesktop.org/basedir-spec). A folder without a description has
no stack any more.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

ENV_STATE: Final = "XDG_STATE_HOME"
MOST: Final = 20


def remember(root: Path) -> None:
    """Put a folder in front of those that are remembered.

    Raises:
        OSError: the state folder cannot be written.
    """
    file = _file()
    roots = [root.absolute(), *(other for other in remembered() if other != root.absolute())]
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps({"roots": [str(one) for one in roots[:MOST]]}, indent=2) + "\n")
    draft.replace(file)


def remembered() -> list[Path]:
    """The folders, the one in which a stack was started last first; none if the file cannot be read."""
    try:
        return [Path(root) for root in json.loads(_file().read_text(encoding="utf-8"))["roots"]]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _file() -> Path:
    """The file; a relative ``XDG_STATE_HOME`` does not count, as the specification says.

    Raises:
        OSError: the user has no home.
    """
    named = Path(os.environ.get(ENV_STATE, ""))
    if named.is_absolute():
        return named / "fanin" / "local.json"
    try:
        return Path.home() / ".local" / "state" / "fanin" / "local.json"
    except RuntimeError as error:
        raise FileNotFoundError("the user has no home folder") from error
