"""Where calls come in: requests, stream records and messages are decoded here; use cases are wired."""
