"""fanin's own API, version 1: one module of routes for each feature."""
