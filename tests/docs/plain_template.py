"""The plain CloudFormation template, without its zip files: its parameters and outputs."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fanin_cdk import template
from tests.infra.conftest import UNBUNDLED


@cache
def plain_template() -> dict[str, Any]:
    """What ``python -m fanin_cdk.template`` writes, but for the code of functions and layers."""
    with TemporaryDirectory() as folder:
        name = template._synthesize(Path(folder), UNBUNDLED)
        content: dict[str, Any] = json.loads((Path(folder) / f"{name}.template.json").read_text())
    return content
