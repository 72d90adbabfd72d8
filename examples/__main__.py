"""Runs a demo on this machine: ``python -m examples catalog``, or console, fleet, pipeline.

Whatever it starts is stopped at its end, also after Ctrl-C.
"""

import signal
import sys


def main(name: str = "catalog", *arguments: str) -> int:
    """Run a demo; the exit code is 0 only if all that it promises holds."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    try:
        from importlib import import_module

        from botocore.exceptions import BotoCoreError, ClientError

        from fanin import FaninError
        from fanin.local import Steps

        try:
            with Steps(sys.stdout) as step:
                return 0 if import_module(f"examples.{name}.demo").main(arguments, step) else 1
        except (FaninError, BotoCoreError, ClientError, TimeoutError, ValueError) as error:
            print("", error, *getattr(error, "__notes__", ()), sep="\n", flush=True)
            return 1
    except KeyboardInterrupt:
        print("\ninterrupted; everything is stopped", flush=True)
        return 130


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
