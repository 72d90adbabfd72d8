"""Where handlers, requirements and fanin itself are found, in a checkout and in an installed wheel."""

import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import jsii

import fanin

BUNDLED = Path(__file__).with_name("bundled")
"""The folders ``functions`` and ``layers`` in an installed wheel; ``infra/setup.py`` puts them there."""
HOME = BUNDLED if BUNDLED.is_dir() else Path(__file__).resolve().parents[2]
FUNCTIONS = HOME / "functions"
"""One folder for each Lambda function."""
REQUIREMENTS = HOME / "layers"
"""One folder for each set of third-party packages, with its ``requirements.txt``."""
PACKAGE = Path(fanin.__file__).parent
"""The package fanin that is installed; layers are made of it."""
NOT_CODE = ("__pycache__", "*.egg-info")


class VersionMismatch(RuntimeError):
    """fanin-cdk and the installed fanin are of different releases; the message says how to repair that."""


def check_versions(installed: str | None = None) -> None:
    """Refuse to deploy handlers of one release with a layer of another one.

    Args:
        installed: version of fanin-cdk; None looks it up if it was installed as a wheel. In a checkout both
            come from the same commit.

    Raises:
        VersionMismatch: the versions differ.
    """
    if installed is None:
        if HOME != BUNDLED:
            return
        installed = version("fanin-cdk")
    if installed != fanin.__version__:
        raise VersionMismatch(
            f"fanin-cdk is {installed} and fanin is {fanin.__version__}, but the handlers of one release "
            f"need the fanin of the same; run: pip install 'fanin-cdk=={installed}' 'fanin=={installed}'"
        )


@jsii.implements(cdk.ILocalBundling)
class CopyPackage:
    """Bundles the installed fanin, without Docker.

    Args:
        folder: where the package goes in the asset, such as ``python`` for a layer.
        without: rooms of the package that stay behind, such as ``cli``.
    """

    def __init__(self, folder: str, without: Sequence[str]) -> None:
        self._folder = folder
        self._without = without

    @property
    def source(self) -> str:
        """The folder that the CDK hashes."""
        return str(PACKAGE)

    @property
    def excluded(self) -> list[str]:
        """What stays behind, as patterns of .gitignore; the hash of the asset leaves it out, too."""
        return [*(f"/{room}/" for room in self._without), *NOT_CODE]

    def try_bundle(self, output_dir: str, *_options: Any, **_more: Any) -> bool:
        """Copy the package into the asset; the CDK calls this."""
        rooms = shutil.ignore_patterns(*NOT_CODE, "*.pyc")

        def ignored(folder: str, names: list[str]) -> set[str]:
            return set(rooms(folder, names)) | (set(self._without) if Path(folder) == PACKAGE else set())

        shutil.copytree(PACKAGE, Path(output_dir, self._folder, PACKAGE.name), ignore=ignored)
        return True
