"""Which program installs packages: uv, in a tenth of the time, where it is there, and pip where it is not."""

from __future__ import annotations

import sys
from pathlib import Path


def installer(python: Path | str = sys.executable) -> list[str]:
    """The command that installs packages for an interpreter; requirements and options of both follow.

    Args:
        python: the interpreter, which need not have pip.
    """
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        return [str(uv), "pip", "install", "--quiet", "--python", str(python)]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
    return [*pip, "--quiet", "--disable-pip-version-check"]
