"""fanin: know, exactly and at once, when a fan-out is finished."""

__version__ = "0.1.0"
