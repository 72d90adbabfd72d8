"""Templates, and how figures, times and addresses are written in them."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from fanin.console.actions.action import ConsoleAction
from fanin.console.actions.subjects import SUBJECTS
from fanin.console.options import Options
from fanin.domain.directory import Registration
from fanin.domain.limits import TURNING
from fanin.domain.prices import dollars
from fanin.wire.typed import duration

UNKNOWN: Final = Markup("\u2013")
"""What stands where a value is not known."""
HERE: Final = Path(__file__).parent
PLACES: Final = {"batch": "batches", "scatter": "scatters", "frame": "frames", "buffer": "batches"}
"""Kind of a batch → the part of the console that shows it."""
SOON: Final = 0.25
"""A lease with less than this share of it left ends soon, unless a heartbeat comes."""
_TURNING: Final = re.compile(f"[{TURNING}]")


class Templates:
    """Renders the templates of a console. Everything that is not ``Markup`` is escaped.

    Args:
        options: of the console.
        now: tells the time, ms since the epoch.
    """

    def __init__(self, options: Options, now: Callable[[], int]) -> None:
        self._options = options
        self._now = now

    def render(self, template: str, **values: Any) -> str:
        """A page, or a part of one."""
        return self._environment.get_template(template).render(**values)

    def macro(self, template: str, name: str, *values: Any) -> Markup:
        """What a macro of a template makes: the inner HTML of a fragment."""
        html: Markup = getattr(self._environment.get_template(template).module, name)(*values)
        return html

    def url(self, *segments: object, **query: object) -> str:
        """An address of this console.

        Args:
            segments: of the path; each is one segment, whatever characters it has.
            query: parameters. One that is None or empty is left out; one with several values is repeated.
        """
        path = "".join(f"/{quote(str(segment), safe='')}" for segment in segments)
        given = {name: value for name, value in query.items() if value is not None and value != ""}
        return (self._options.root + path or "/") + (f"?{urlencode(given, doseq=True)}" if given else "")

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_straight,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        own = (number, percent, when, day, compact, clock, dollars, queue_name, error_key, code_marks)
        environment.filters.update({one.__name__: one for one in own} | {"ago": self._ago, "span": duration})
        environment.tests["ending"] = self._ending
        environment.globals.update(
            url=self.url,
            asset=self._asset,
            options=self._options,
            places=PLACES,
            here="",
            buttons=self._buttons,
        )
        return environment

    def _ago(self, at: int | None) -> Markup:
        """How long ago a time is, as an element that the page's script keeps up to date."""
        if at is None:
            return UNKNOWN
        passed = (self._now() - at) / 1000
        text = f"{duration(passed)} ago" if passed >= 0 else f"in {duration(-passed)}"
        return Markup('<time datetime="{}" title="{}" data-at="{}">{}</time>').format(
            _iso(at), day(at), at, text
        )

    def _ending(self, one: Registration) -> bool:
        """Whether a lease ends soon."""
        return one.until - self._now() < SOON * 1000 * one.lease

    def _buttons(self, kind: str, found: Any) -> tuple[ConsoleAction[Any], ...]:
        """The actions that are possible for a subject of a kind; none in a console that is read-only."""
        if not self._options.write:
            return ()
        subject = next(one for one in SUBJECTS if one.kind == kind)
        return tuple(one for one in subject.actions if not one.why_not(found))

    def _asset(self, name: str) -> str:
        """The address of a static file; it changes with its content, so browsers may keep the file."""
        return self.url("static", name, v=_version(name))


@cache
def _version(name: str) -> str:
    return sha256((HERE / "static" / name).read_bytes()).hexdigest()[:12]


def _straight(value: Any) -> Any:
    """A text with characters that turn its direction as escapes, so that a name looks like what it is."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return _TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def number(value: float | None) -> str:
    """A whole number with thin groups of three digits; a dash for None."""
    if value is None:
        return UNKNOWN
    return f"{value:,}" if isinstance(value, int) else f"{value:,.0f}"  # totals have more digits than a float


def compact(value: float) -> str:
    """A number in few characters, for axes: 1.2 M."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g}"


def percent(part: float, whole: float) -> str:
    """A share; never 100 % of what is not whole, nor 0 % of what has begun."""
    if not whole:
        return UNKNOWN
    share = 100 * part / whole
    if 0 < share < 0.1:  # noqa: PLR2004
        return "< 0.1 %"
    if part < whole and share > 99.9:  # noqa: PLR2004
        return "> 99.9 %"
    return f"{share:.0f} %" if share in {0, 100} else f"{share:.1f} %"


def day(at: int | None) -> str:
    """A time with its date, in UTC."""
    return UNKNOWN if at is None else f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(at: int) -> str:
    """A time of day, in UTC."""
    return f"{datetime.fromtimestamp(at / 1000, UTC):%H:%M:%S}"


def queue_name(queue: str) -> str:
    """The name of a queue, from its URL or ARN; names have at most 80 characters."""
    return queue.rstrip("/").rpartition("/" if "/" in queue else ":")[2][:80] or UNKNOWN


def code_marks(text: str) -> Markup:
    """A text in which what stands between backticks is code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # the last backtick opens nothing
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts)
    )


def error_key(error: str) -> str:
    """A short name of an error, for addresses: an error may be long, and is anybody's text."""
    return sha256(error.encode(errors="surrogatepass")).hexdigest()[:16]


def when(at: int | None) -> Markup:
    """A time as an element."""
    if at is None:
        return UNKNOWN
    return Markup('<time datetime="{}">{}</time>').format(_iso(at), day(at))


def _iso(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
