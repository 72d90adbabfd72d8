"""Guaranteed delivery: frames of envelopes, leases on envelopes, and messages to senders."""
