"""Webhooks: HTTPS requests to hosts that users name, from a function that must not reach anything else."""
