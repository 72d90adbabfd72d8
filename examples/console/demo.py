"""Starts the local stack with something to see, and opens the console with buttons.

    make demo-ui                    opens a browser
    make demo-ui UI=--no-browser    prints the link only

Look at the overview, find what is wrong, and mend it: ``examples/console/world.py`` says what there is.
Ctrl-C stops everything, the emulator included.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from examples.console.world import World
from examples.deployed import deployed
from fanin import Tracker
from fanin.console.serve import serve
from fanin.local import CHECKOUT, Steps

HOME = CHECKOUT / ".fanin" / "demo-ui"


def main(arguments: Sequence[str], step: Steps) -> bool:
    """Serve the console of a busy stack until somebody interrupts it."""
    parser = argparse.ArgumentParser(description="Show the console of a busy local stack.")
    parser.add_argument("--port", type=int, help="TCP port of the console")
    parser.add_argument("--no-browser", action="store_true", help="print the link only")
    parser.add_argument("--root", type=Path, default=HOME, help="folder for the emulator's state")
    options = parser.parse_args(arguments)
    with deployed(options.root, step):
        tracker = Tracker.local(options.root)
        world = World(tracker)
        try:
            step("sending messages")
            world.start()
            step.done()
            serve(
                tracker.services,
                name="demo",
                write=True,
                port=options.port,
                browser=not options.no_browser,
                report=lambda line: print(line, flush=True),
            )
        finally:
            world.stop()
    return True
