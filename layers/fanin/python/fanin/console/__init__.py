"""The console: pages that show batches and patterns, and what is wrong with them, with buttons to mend it.

One Starlette application over the calls of fanin. ``fanin ui`` serves it on this machine, and a function
serves it behind the API (``console=true``). It needs the extra ``fanin[ui]``; nothing else needs that.
"""

from fanin.console.application import console
from fanin.console.options import Options

__all__ = ["Options", "console"]
