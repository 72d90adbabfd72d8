"""A local stack that nobody started: what a deployment to an emulator is described as."""

from pathlib import Path

from fanin import names
from fanin.local import aws
from fanin.local.emulator import Emulator

EMULATOR = Emulator(pid=7, port=4566, auth=True)
OUTPUTS = {output: f"the {output}" for output in names.OUTPUTS.values()} | {
    names.OUTPUT_API_URL: "https://abc123.execute-api.us-east-1.amazonaws.com"
}
STACK = aws.describe(EMULATOR, OUTPUTS, log_file=Path("log"), fingerprint="f")
