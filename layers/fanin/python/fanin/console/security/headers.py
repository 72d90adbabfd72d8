"""Headers of every answer: what a browser may load, run, and tell others."""

from __future__ import annotations

from typing import Final

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing inline, nothing from other hosts, so that a text that slips into a page cannot run."""

REFERRER: Final = "same-origin"
"""Tells other sites nothing. Under ``no-referrer``, browsers call the origin of the console's forms null."""

HEADERS: Final[dict[str, str]] = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": REFERRER,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
STORED_FOR_A_YEAR: Final = "public, max-age=31536000, immutable"
"""Cache-Control of static files, whose addresses change with their content."""
NEVER_STORED: Final = "no-store"
"""Cache-Control of pages: they show what others must not find in a cache."""
