"""What the calls of fanin return, and the values of their options: for annotations and comparisons.

As in ``fanin``, a name's module is loaded with its first use; ``types.pyi`` declares the names.
"""

from fanin.lazy import names_of

__all__, __getattr__, __dir__ = names_of(__name__)
