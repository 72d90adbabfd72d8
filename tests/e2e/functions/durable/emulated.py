"""The durable function on the emulator, for which a timeout of 0 seconds is over; on AWS it means none.

The SDK sends both timeouts of a callback always, so those that are 0 are left out of its requests.
"""

import boto3
from handler import handler

__all__ = ["handler"]


def leave_out_zeros(params, **_):
    for update in params["Updates"]:
        options = update.get("CallbackOptions", {})
        for name in [name for name, seconds in options.items() if not seconds]:
            del options[name]


boto3.setup_default_session()
boto3.DEFAULT_SESSION.events.register(
    "provide-client-params.lambda.CheckpointDurableExecution", leave_out_zeros
)
