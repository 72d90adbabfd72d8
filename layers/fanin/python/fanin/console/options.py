"""What a console may do, and where it is served."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How a console is served.

    Attributes:
        name: of the stack that it shows, for people.
        write: whether it has buttons that change something.
        caller: who presses them, for the action log: the user of this machine. A server that knows it for
            each request puts a ``Caller`` into the request's scope, as ``fanin.caller``.
        root: path that all its addresses begin with, such as ``/console``; empty at the root of a host.
        hosts: values of the header ``Host`` that are answered; None where whoever serves it has checked that.
        origins: what browsers send as ``Origin`` where a proxy in front gives requests another ``Host``, such
            as ``https://fanin.example.com``, in lower case.
        sessions: whether only browsers that came by a launch link are answered.
        cookie: name of the session's cookie. Cookies are shared by all ports of a host, so the port is part
            of it.
        secure: whether browsers must send that cookie over encrypted connections only.
        every: seconds until a page asks for what is new while something changes.
    """

    name: str = "fanin"
    write: bool = False
    caller: str = ""
    root: str = ""
    hosts: frozenset[str] | None = None
    origins: frozenset[str] = frozenset()
    sessions: bool = True
    cookie: str = "fanin_ui"
    secure: bool = False
    every: float = 1.0
