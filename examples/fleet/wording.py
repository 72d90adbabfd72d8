"""What office, vehicles and infrastructure call things among themselves."""

from __future__ import annotations

from typing import Final

TOPIC: Final = "vehicles"
"""Every vehicle of every fleet registers under it; the attribute ``fleet`` tells them apart."""
WEEKLY_REPORT: Final = "Weekly Report"
"""Type of the message that asks for a week."""
APP: Final = "fleet-report"
"""In the metadata of the office's scatters, so that its queue hears of these only."""
CHANNELS: Final = "fleet-channel-"
"""What the names of vehicles' queues begin with, for the role that may make them."""
