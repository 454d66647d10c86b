"""The context files an admin writes: `content/discord/base/*.md` for everywhere, one file a channel, `dm.md`.

How the bot uses its memory is in `base/core.md`, below `## Memory`. Where no text has that heading, because
the folder is older than it, the program's own section is used; an empty section is none.
The personality may be there too: `content/soul/identity.md`, `user.md`, `philosophy.md`.

Files are read when used, and again only after a change, so that an edit takes effect without a restart. A
file that cannot be read is left out with a warning.
"""

import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import aiofiles

from discoclaw.core.message import Place
from discoclaw.core.text import clip
from discoclaw.soul.soul import Soul
from discoclaw.store.files import read_in_thread
from discoclaw.store.threads import DISK

log = logging.getLogger(__name__)

MOST_KNOWN = 1_000
MAX_FILE = 20_000
"""The most UTF-16 units of a context file that are used."""


PACKAGED: Final = next(
    folder for above in (1, 2) if (folder := Path(__file__).parents[above] / "content").exists() or above == 2
)
"""The `content/` that comes with the program: in an installed package, or in the checkout."""
_MEMORY = re.compile(r"^## Memory[ \t]*$(.*?)(?=^##? |\Z)", re.MULTILINE | re.DOTALL)

Texts = tuple[tuple[str, ...], tuple[str, ...]]
"""The texts for everywhere, ordered by file name, and those for one place."""


class Content:
    """Context files below `folder` (the `content` folder), or the package's own until somebody makes one."""

    def __init__(self, folder: Path) -> None:
        self._own = folder
        self._soul: tuple[dict[Path, int], Soul] | None = None
        self._known: dict[str, tuple[dict[Path, int], Texts]] = {}

    @property
    def _folder(self) -> Path:
        return self._own if _changed(self._own) else PACKAGED

    def in_ram(self, place: Place) -> Texts | None:
        """The texts if they were read and no file changed since, else None. Costs a `stat` for each file."""
        known = self._known.get(_file_name(place))
        if known is None or any(_changed(path) != changed for path, changed in known[0].items()):
            return None
        return known[1]

    def soul_in_ram(self) -> Soul | None:
        """The personality if it was read and no file changed since, else None. Costs a `stat` for each."""
        if self._soul is None or any(_changed(path) != changed for path, changed in self._soul[0].items()):
            return None
        return self._soul[1]

    async def soul(self) -> Soul:
        """The personality, read from its files again."""
        looked_at = {self._own: _changed(self._own)}  # first, so that no change is missed
        files = [self._folder / "soul" / f"{name}.md" for name in ("identity", "user", "philosophy")]
        looked_at.update((path, _changed(path)) for path in files)
        identity, user, philosophy = [await _text(path) for path in files]
        self._soul = (looked_at, Soul(identity, user, philosophy))
        return self._soul[1]

    async def of(self, place: Place) -> Texts:
        """The texts, read from their files again."""
        name = _file_name(place)
        looked_at = {self._own: _changed(self._own)}  # first, so that no change is missed
        common, channels = self._folder / "discord" / "base", self._folder / "discord" / "channels"
        looked_at[common] = _changed(common)
        base = await read_in_thread(lambda: sorted(common.glob("*.md")))
        own = [channels / f"{name}.md"] if name else []
        packaged = PACKAGED / "discord" / "base" / "core.md"
        looked_at.update((path, _changed(path)) for path in [packaged, *base, *own])
        found = await _texts(base), await _texts(own)
        if not any(map(_MEMORY.search, found[0])) and (rules := _MEMORY.search(await _text(packaged))):
            found = (*found[0], rules[0].strip()), found[1]
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[name] = (looked_at, found)
        return found


def _file_name(place: Place) -> str:
    """The name of a place's file. It comes from Discord, so only a plain file name may choose a file."""
    if place.kind == "dm":
        return "dm"
    name = os.path.basename(place.group_name)
    return "" if name.lower() == "dm" else name  # `dm.md` is for DMs, not for a channel of that name


def _changed(path: Path) -> int:
    """When a file or folder was last changed (ns); 0 if it does not exist or cannot be read."""
    try:
        return os.stat(path).st_mtime_ns
    except (OSError, ValueError):
        return 0


async def _texts(paths: Sequence[Path]) -> tuple[str, ...]:
    """The texts of some files; empty ones are left out."""
    return tuple([text for path in paths if (text := await _text(path))])


async def _text(path: Path) -> str:
    """A file's text, stripped; "" if it cannot be read."""
    try:
        async with aiofiles.open(path, encoding="utf-8", executor=DISK) as file:
            return clip((await file.read()).strip(), MAX_FILE)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        log.warning("the context file %a is left out: %s", path.name, type(error).__name__)
        return ""
