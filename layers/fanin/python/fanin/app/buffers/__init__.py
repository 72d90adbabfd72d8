"""Bounded buffers: their slots, deliveries, records and receipts."""
