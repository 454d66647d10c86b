"""Templates and how values are written in them: each text is on one line, without tricks, and escaped.

What people on Discord call themselves may be markup, or turn the direction of what stands behind it. So a
text loses its control characters and its overrides of direction before it is escaped. `raw` keeps line
breaks.
"""

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from discoclaw import __version__
from discoclaw.core.purge import Derived, Phase, Purge
from discoclaw.core.text import clip, size_text
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import money
from discoclaw.show.usage import cautions, used
from discoclaw.show.words import count, line

FOLDER: Final = Path(__file__).parent
STATIC: Final = {"style.css": "text/css", "icon.svg": "image/svg+xml"}
"""Our files that aren't templates, and their types."""
LONGEST: Final = 2_000


class Templates:
    """The templates of the page. `now` is the time (ms), `zone` the time zone in which times are written."""

    def __init__(self, now: Callable[[], int], zone: tzinfo) -> None:
        self.static: dict[str, tuple[str, str]] = {}
        """The text and type of each file in `STATIC`, once `load` was called."""
        self._now = now
        self._zone = zone
        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=_written,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters.update(
            ago=self.ago,
            when=self.when,
            raw=_raw,
            count=count,
            size=size_text,
            span=span,
            number=lambda value: f"{value:,}",
            money=money,
            left=lambda nano: money(nano) if nano else "nothing",
            used=used,
            cautions=cautions,
        )
        self._environment.globals["version"] = __version__

    def load(self) -> None:
        """Read and compile all of them. Blocking."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)
        for name, kind in STATIC.items():
            self.static[name] = ((FOLDER / "static" / name).read_text(encoding="utf-8"), kind)

    def render(self, name: str, **values: Any) -> str:
        """A template with its values. Raises UndefinedError for one that is missing."""
        return self._environment.get_template(f"{name}.html").render(values)

    def ago(self, ms: int) -> Markup:
        """How long ago a time (ms) was."""
        text = f"{span(max(0, self._now() - ms) / 1000)} ago"
        return Markup('<time datetime="{}" title="{}">{}</time>').format(iso_ms(ms), self._local(ms), text)

    def when(self, ms: int) -> Markup:
        """A time (ms), to the minute."""
        return Markup('<time datetime="{}">{}</time>').format(iso_ms(ms), self._local(ms))

    def _local(self, ms: int) -> str:
        return f"{datetime.fromtimestamp(ms / 1000, self._zone):%Y-%m-%d %H:%M %Z}"


def span(seconds: float) -> str:
    """A duration in the largest unit of which there are at least two: “90 s”, “3 min”, “5 h”, “2 days”."""
    for unit, size in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _written(value: Any) -> Any:
    """A value as it is written, before it is escaped."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return line(value, LONGEST)
    if value is None:
        raise TypeError("a template would write None")
    return value


def _raw(text: str) -> Markup:
    """A text with its line breaks, each line without tricks."""
    return Markup("\n").join(escape(line(one, LONGEST)) for one in text.splitlines())


# ----------------------------------------------------------------------
# The trouble that the log spoke of lately: warnings and errors, in RAM, each once with how often it came.

MOST: Final = 200
MOST_CHARS: Final = 600
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Trouble:
    """A line of the log, how often it came, and when (ms) it first and last did.

    Lines that differ in short numbers alone are the same; `text` is the newest.
    """

    level: str
    source: str
    text: str
    count: int
    first: int
    last: int

    @property
    def bad(self) -> bool:
        """Whether it is an error, and not only a warning."""
        return self.level != "WARNING"


class RecentErrors(Derived):
    """The newest `MOST` of them. It is a `core.ports.Service`: it listens from its start on."""

    name = "recent errors"

    def __init__(self, clean: Callable[[str], str]) -> None:
        self._clean = clean
        self._handler = _Handler(self._noted)
        self._lock = threading.RLock()  # what is collected as garbage inside may log, too
        self._known: OrderedDict[tuple[str, str, str], Trouble] = OrderedDict()

    async def start(self) -> None:
        """Begin to listen to the log."""
        logging.getLogger().addHandler(self._handler)

    async def settle(self) -> None:
        """Do nothing: every error is noted at once."""

    async def close(self) -> None:
        """Stop listening. May be called again."""
        logging.getLogger().removeHandler(self._handler)

    def newest(self) -> list[Trouble]:
        """All of them, newest first."""
        with self._lock:
            return list(reversed(self._known.values()))

    def purge(self, purge: Purge, phase: Phase) -> None:
        if phase == "ram" and purge.erases and (user_id := purge.user_id):
            with self._lock:
                for key in [key for key, one in self._known.items() if user_id in one.text]:
                    del self._known[key]

    def _noted(self, record: logging.LogRecord) -> None:
        """Count a record. It comes from any thread."""
        text = clip(self._clean(clip(_text(record), 4 * MOST_CHARS)), MOST_CHARS)
        key = (record.levelname, record.name, _NUMBER.sub(_short, text))
        at = int(record.created * 1000)
        with self._lock:
            known = self._known.pop(key, None) or Trouble(record.levelname, record.name, text, 0, at, at)
            self._known[key] = replace(known, text=text, count=known.count + 1, last=at)
            if len(self._known) > MOST:
                self._known.popitem(last=False)


class _Handler(logging.Handler):
    """Passes on each record from WARNING upwards, one at a time."""

    def __init__(self, noted: Callable[[logging.LogRecord], None]) -> None:
        super().__init__(logging.WARNING)
        self._noted = noted

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._noted(record)
        except Exception:  # noqa: BLE001 - as every handler: what is logged may have any fault in its format
            self.handleError(record)


def _text(record: logging.LogRecord) -> str:
    """A record's text, and what exception it is about if there is one."""
    text, error = record.getMessage(), record.exc_info[1] if record.exc_info else None
    if error is None:
        return text
    return f"{text} ({type(error).__name__}{f': {error}' if str(error) else ''})"


def _short(match: re.Match[str]) -> str:
    """A pause or a count becomes one sign; an id stays, because it says which thing it is about."""
    return "#" if len(match[0]) < 6 else match[0]
