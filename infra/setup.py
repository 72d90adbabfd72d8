"""Builds fanin-cdk: what lies beside this folder in a checkout goes into the package.

These are the handlers of the functions, the requirements of the layers, and the version, which ``fanin``
alone declares. An sdist carries them with it, so it builds the same wheel without a checkout.
"""

import re
import shutil
from email.parser import Parser
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
BUNDLED = Path("fanin_cdk", "bundled")
CARRIED = ("functions/*/*.py", "layers/*/*.txt")
PKG_INFO = HERE / "PKG-INFO"
"""Every sdist has it, and no checkout."""


def version() -> str:
    if PKG_INFO.exists():
        return str(Parser().parsestr(PKG_INFO.read_text(encoding="utf-8"))["Version"])
    declared = (CHECKOUT / "layers/fanin/python/fanin/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', declared, re.MULTILINE)
    if found is None:
        raise RuntimeError("layers/fanin/python/fanin/__init__.py does not declare __version__")
    return found[1]


def carry(destination: Path) -> list[str]:
    """Copy the files into a folder that holds the package; their paths there."""
    origin = HERE / BUNDLED if PKG_INFO.exists() else CHECKOUT
    carried = []
    for file in sorted(file for pattern in CARRIED for file in origin.glob(pattern)):
        target = destination / BUNDLED / file.relative_to(origin)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
        carried.append(str(target))
    if not carried:
        raise RuntimeError(
            f"{origin} has neither handlers nor requirements; build from a checkout or an sdist"
        )
    return carried


class BuildWithHandlers(build_py):
    """Adds the files to the wheel; an editable installation finds them in the checkout."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            carry(Path(self.build_lib))


class SdistWithHandlers(sdist):
    """Adds the files to the sdist."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        carry(Path(base_dir))


VERSION = version()
setup(
    version=VERSION,
    install_requires=[f"fanin[lambda]=={VERSION}", "aws-cdk-lib>=2.269,<3", "constructs>=10.5,<11"],
    cmdclass={"build_py": BuildWithHandlers, "sdist": SdistWithHandlers},
)
