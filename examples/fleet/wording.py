"""Names on which office, vehicles and infrastructure agree."""

from typing import Final

TOPIC: Final = "vehicles"
"""Topic in which all vehicles register; the attribute ``fleet`` says to which fleet one belongs."""
WEEKLY_REPORT: Final = "Weekly Report"
"""Type of the message that asks for a week."""
APP: Final = "fleet-report"
"""Metadata of the office's scatters, by which its queue gets the events of no others."""
CHANNELS: Final = "fleet-channel-"
"""Prefix of the names of vehicles' queues; the role of vehicles may create queues with it."""
