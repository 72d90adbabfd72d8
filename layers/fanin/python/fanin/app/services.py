"""The ledger and the patterns that stand on it, in one bundle: what the entries are given to work with."""

from __future__ import annotations

from fanin.app.service import LedgerService


class Services:
    """One process's use cases; each pattern is made with its first use.

    Args:
        ledger: what all of them stand on; its ports are theirs.
    """

    def __init__(self, ledger: LedgerService) -> None:
        self.ledger = ledger
