"""Templates and how values are written in them: each text is on one line, without tricks, and escaped.

What people on Discord call themselves may be markup, or turn the direction of what stands behind it. So a
text loses its control characters and its overrides of direction before it is escaped. `raw` keeps line
breaks.
"""

from collections.abc import Callable
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from discoclaw import __version__
from discoclaw.core.text import size_text
from discoclaw.core.times import iso_ms
from discoclaw.core.usage import money
from discoclaw.show.usage import cautions, purpose, used
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
            purpose=purpose,
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
