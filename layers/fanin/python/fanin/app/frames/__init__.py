"""Guaranteed delivery: frames of envelopes, leases on them, and what their senders are told."""
