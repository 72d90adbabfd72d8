"""The library: the tracker, producers and consumers, over HTTPS or straight on the tables."""
