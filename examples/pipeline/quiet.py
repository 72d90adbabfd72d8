"""Keeps what Java says of itself at its start off the console; log4j2.properties decides what Spark logs."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

NOISE: Final = (
    b"WARNING: Using incubator modules",
    b"Using Spark's default log4j profile",
    b"Setting default log level to",
    b"To adjust logging level use sc.setLogLevel",
    b"NativeCodeLoader",
    b"Your hostname, ",
    b"Set SPARK_LOCAL_IP if you need to bind",
)
"""Spark's launcher adds a module that makes Java warn, for which Java has no option; and it logs a little
before any configuration is read."""
STDERR: Final = 2


@contextmanager
def quiet_children() -> Iterator[None]:
    """Leave lines of ``NOISE`` out of what processes write to stderr that start inside the ``with`` block.

    They stay filtered until they end. Afterwards this process writes to its stderr as before.
    """
    real = os.dup(STDERR)
    reads, writes = os.pipe()
    os.dup2(writes, STDERR)
    os.close(writes)
    threading.Thread(target=_pass_on, args=(reads, real), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(real, STDERR)


def _pass_on(reads: int, real: int) -> None:
    with open(reads, "rb", buffering=0) as pipe, open(real, "wb", buffering=0) as stderr:
        for line in iter(pipe.readline, b""):
            if not any(noise in line for noise in NOISE):
                stderr.write(line)
