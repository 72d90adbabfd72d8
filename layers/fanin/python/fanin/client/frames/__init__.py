"""Both ends of guaranteed delivery: envelopes, the repeater, and the idempotent receiver."""
