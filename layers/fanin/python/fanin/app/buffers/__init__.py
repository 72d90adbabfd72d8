"""Bounded buffers: slots, work on its way out, records and receipts."""
