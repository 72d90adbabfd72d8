"""Empties what a stack leaves behind, when the stack is deleted; CloudFormation calls it."""

from typing import Any

from fanin.adapters.leftovers import AwsLeftovers
from fanin.entry.invocation import INVOCATION
from fanin.entry.observe import observed
from fanin.entry.removal import follow_stack


@observed
def handler(event: dict[str, Any], context: Any) -> None:
    follow_stack(event, AwsLeftovers(INVOCATION.seconds_left))
