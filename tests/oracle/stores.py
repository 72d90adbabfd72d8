"""Other programs that speak DynamoDB, and are not ours: what they answer, our stores must expect."""

import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fanin.local.stack import CHECKOUT, FOLDER
from tests.npm.packages import Package

HOME: Final = CHECKOUT / FOLDER / "oracle"
CHOICE: Final = "FANIN_ORACLE"
"""Environment variable: ``dynamodb-local`` for AWS's own store; else dynoxide."""
START_SECONDS: Final = 60.0

DYNOXIDE: Final = Package(
    "@dynoxide/linux-x64",
    "1.2.1",
    "sBHqlxJ9ANkLluFkYRfd5r8Y0ApFew4FhOrlhgRAgD4XzEoFOukEo1nuBTQ1+jTtofqwn4NWQ2k0Tn5mNTjgUg==",
)
DYNAMODB_LOCAL: Final = Package(
    "amplify-dynamodb-simulator",
    "2.9.30",
    "xTeeRLvzEfqyd5lh3bH4c0kHvSHHmmhD5ZDsHFKAQ5g2Zl6JqlFdutaQhCLHzxEp6Ry1o7TB6niIoXuQAnSewQ==",
)


def absent() -> str | None:
    """Why there is no second store on this machine; None if there is one."""
    machine = f"{platform.system()} on {platform.machine()}"
    if _local() or machine == "Linux on x86_64":
        return None
    return f"dynoxide is pinned for Linux on x86_64, and this is {machine}; try make oracle, which needs Java"


def fetch() -> Path:
    """Fetch the store's package, unless it is there already; returns its folder."""
    return (DYNAMODB_LOCAL if _local() else DYNOXIDE).unpacked(HOME)


@contextmanager
def started() -> Iterator[str]:
    """Run the store on a free port, with nothing in it; gives the URL."""
    folder, port = fetch(), _free_port()
    process = subprocess.Popen(
        _dynamodb_local(port) if _local() else _dynoxide(folder, port),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _local() -> bool:
    return os.environ.get(CHOICE) == "dynamodb-local"


def _dynoxide(folder: Path, port: int) -> list[str | Path]:
    binary = folder / "dynoxide"
    binary.chmod(0o755)
    return [binary, "serve", "--host", "127.0.0.1", "--port", str(port)]


def _dynamodb_local(port: int) -> list[str | Path]:
    java = shutil.which("java")
    if java is None:
        raise FileNotFoundError("DynamoDB Local needs Java; run make oracle, which brings it")
    options = ["-inMemory", "-sharedDb", "-disableTelemetry", "-port", str(port)]
    jar = ["-Djava.library.path=emulator/DynamoDBLocal_lib", "-jar", "emulator/DynamoDBLocal.jar"]
    return [java, *jar, *options]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"the second store ended with code {process.returncode} before it answered")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"the second store did not answer on port {port} within {START_SECONDS:.0f} s")
