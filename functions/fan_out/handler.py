"""Opens a batch for a state of Step Functions, sends its messages, and closes it; see ``FanOutAndWait``."""

from typing import Any

from fanin.client.producing.state_task import fan_out
from fanin.client.tracker import Tracker
from fanin.entry.observe import observed


@observed
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    return fan_out(event, Tracker.from_env())
