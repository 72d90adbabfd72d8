"""Starts the local stack with something to see, and opens the console with buttons.

    make demo-ui                    opens a browser
    make demo-ui UI=--no-browser    prints the link only

Look at the overview, find what is wrong, and mend it: ``examples/console/world.py`` says what there is.
Ctrl-C stops everything, the emulator included.
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from examples.console.world import World
from fanin import FaninError, Tracker
from fanin.console.serve import serve
from fanin.local import CHECKOUT, down, up

HOME = CHECKOUT / ".fanin" / "demo-ui"


def run(root: Path, *, port: int | None, browser: bool) -> None:
    """Serve the console of a busy stack until somebody interrupts it.

    Args:
        root: folder whose ``.fanin`` folder gets the state and the log of the emulator.
        port: of the console; None takes a free one.
        browser: open it in a browser.
    """
    down(root)  # an earlier run may have been killed
    try:
        up(root, report=lambda step: print(f"· {step}", flush=True))
        tracker = Tracker.local(root)
        world = World(tracker)
        try:
            print("· sending messages", flush=True)
            world.start()
            serve(
                tracker.services,
                name="demo",
                write=True,
                port=port,
                browser=browser,
                report=lambda line: print(line, flush=True),
            )
        finally:
            world.stop()
    finally:
        print("· stopping the emulator", flush=True)
        down(root)


def main() -> int:
    """Run the demo until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Show the console of a busy local stack.")
    parser.add_argument("--port", type=int, help="TCP port of the console")
    parser.add_argument("--no-browser", action="store_true", help="print the link only")
    parser.add_argument("--root", type=Path, default=HOME, help="folder for the emulator's state")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    try:
        run(options.root, port=options.port, browser=not options.no_browser)
    except KeyboardInterrupt:
        return 0
    except FaninError as error:
        print(f"{error}\nthe emulator's log: {options.root / '.fanin' / 'emulator.log'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
