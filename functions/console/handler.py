"""Serves the console behind the API."""

from fanin.console.behind_api import respond
from fanin.entry.observe import observed

handler = observed(respond)
