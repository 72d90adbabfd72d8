"""What the JVM says at its start stays off the console, and nothing else does."""

import subprocess
import sys

PROGRAM = """
import subprocess, sys, threading
from examples.pipeline.quiet import quiet_children

child = "import sys; print('WARNING: Using incubator modules: jdk.incubator.vector', file=sys.stderr);" \\
    "print('an error', file=sys.stderr); print('26/11/25 WARN NativeCodeLoader: Unable', file=sys.stderr)"
with quiet_children():
    started = subprocess.Popen([sys.executable, "-c", child])
started.wait()
print("WARNING: Using incubator modules, says the parent", file=sys.stderr)
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join(60)  # it has passed on all that the child wrote
"""


def test_a_childs_noise_is_left_out_and_its_errors_are_not() -> None:
    # Given a process that starts another one quietly, which warns and has an error
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)  # noqa: S603

    # Then its error is there, and what the first process says itself
    assert sorted(ran.stderr.splitlines()) == [
        "WARNING: Using incubator modules, says the parent",
        "an error",
    ]
