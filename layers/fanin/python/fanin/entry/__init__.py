"""Where calls come in: HTTP, streams and queues are decoded here, and use cases are wired."""
