"""Who may do what: the five groups of calls that a caller may be allowed to make."""

from __future__ import annotations

from enum import StrEnum


class AccessGroup(StrEnum):
    """A group of calls; each route of the API is in one.

    Attributes:
        READ: look at everything: batches, failures with their messages, replies, the directory.
        PRODUCE: open batches, scatters and frames, add items, put work and events in.
        CONSUME: acknowledge, fail, claim and reply; take work; be in the directory.
        OPERATE: decide about batches of others: cancel, release, redrive, repair, call targets again.
        ADMINISTER: remove what is stored, and decide where messages go: expire, routes, buffers.
    """

    READ = "read"
    PRODUCE = "produce"
    CONSUME = "consume"
    OPERATE = "operate"
    ADMINISTER = "administer"
