"""fanin: know, exactly and at once, when a fan-out is finished.

What users call, make and raise is imported from here. What calls return, and the values of their options, is
in ``fanin.types``; all errors are in ``fanin.errors``.

A name's module is loaded with its first use, so that importing the package, as every function does, is cheap.
``__init__.pyi`` declares the names.
"""

from fanin.lazy import names_of

__version__ = "0.1.0"

__all__, __getattr__, __dir__ = names_of(__name__)
