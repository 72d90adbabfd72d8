"""The rules of the ledger: pure functions and frozen values, no I/O and no clock."""
