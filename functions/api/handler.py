"""Serves the HTTP API."""

from fanin.entry.http.application import respond
from fanin.entry.observe import observed

handler = observed(respond)
