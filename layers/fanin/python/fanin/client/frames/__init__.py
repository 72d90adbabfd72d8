"""Guaranteed delivery: envelopes, the repeater that sends them, and the idempotent receiver."""
