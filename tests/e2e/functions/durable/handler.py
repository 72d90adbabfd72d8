"""A durable function that imports orders; docs/how-to/targets.md shows it."""

import json
import os
from hashlib import sha256

from aws_durable_execution_sdk_python import CallbackExternalError, durable_execution

from fanin import Tracker


@durable_execution
def handler(event, context):
    imported = context.create_callback("imported")
    context.step(lambda _: fan_out(event["orders"], imported.callback_id), "fan out")
    try:
        told = json.loads(imported.result())  # sleeps here until the last item is done
    except CallbackExternalError as error:
        told = json.loads(error.data)  # with the state: complete, timed_out, cancelled or orphaned
        return {"refused": told["state"], "batch": told["batch_id"]}
    return {"imported": told["items"], "batch": told["batch_id"]}


def fan_out(orders, callback_id):
    on_end = [{"type": "durable_callback", "callback_id": callback_id}]
    key = sha256(callback_id.encode()).hexdigest()  # a step that is repeated goes on with its batch
    with Tracker.from_env().batch(on_end=on_end, key=key, on_error="leave") as batch:
        if batch.row.state == "open":
            batch.send(os.environ["ORDERS_QUEUE_URL"], orders, key="orders")
