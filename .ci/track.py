"""Deploys an assembly to an emulator, and tracks a batch from the producer to its end. Imports fanin alone.

Usage: track.py ASSEMBLY
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from fanin import Tracker
from fanin.local import aws, deploy, emulator
from fanin.local.aws import api_url

ITEMS = 70
SECONDS = 300.0


def main(assembly: Path) -> None:
    with TemporaryDirectory() as made:
        folder = Path(made)
        running = emulator.start(folder / "state", emulator.install(folder / "emulator", print))
        try:
            outputs = deploy(assembly, running.endpoint_url)
            track(running.endpoint_url, outputs)
        finally:
            emulator.stop(folder / "state")


def track(endpoint_url: str, outputs: dict[str, str]) -> None:
    os.environ |= {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_DEFAULT_REGION": aws.REGION,
        "AWS_ACCESS_KEY_ID": aws.ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": aws.SECRET_KEY,
    }
    tracker = Tracker.over_https(api_url(endpoint_url, outputs["ApiUrl"]))
    with tracker.batch(user_key="wheel") as batch:
        batch.send(outputs["RowsUrl"], [{"n": n} for n in range(ITEMS)])
    deadline = time.monotonic() + SECONDS
    while (status := tracker.status(batch.id)).batch.state.value != "complete":
        if time.monotonic() > deadline:
            sys.exit(
                f"after {SECONDS:.0f} s the batch is {status.batch.state.value}, {status.done_min} items done"
            )
        time.sleep(0.5)
    print(f"a consumer from the wheel handled {status.done_min} items, and the batch is complete")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
