"""The use cases, over ports: what the ledger does, wherever its rows are kept."""
