"""Where conversation may be kept: the admin's word for each server and for direct messages. A value."""

from dataclasses import dataclass

from discoclaw.core.message import Place

OFF = {"", "0", "off", "no", "false", "none"}
EVERYWHERE = {"all", "1", "on", "yes", "true"}


@dataclass(frozen=True, slots=True)
class AutoSave:
    """`everywhere`, or on the servers named, and in people's `dms` with us. By default nowhere."""

    everywhere: bool = False
    guilds: frozenset[str] = frozenset()
    dms: bool = False

    def __bool__(self) -> bool:
        return self.everywhere or self.dms or bool(self.guilds)

    def covers(self, place: Place) -> bool:
        """Whether what is said at a place is kept."""
        if self.everywhere:
            return True
        return self.dms if place.kind == "dm" else place.guild_id in self.guilds


def auto_save(text: str) -> AutoSave:
    """What an admin wrote: off, all, or server ids and "dm", divided by commas or white space.

    Raises ValueError, which says what is allowed.
    """
    words = text.replace(",", " ").lower().split()
    if len(words) <= 1 and (words or [""])[0] in OFF:
        return AutoSave()
    if len(words) == 1 and words[0] in EVERYWHERE:
        return AutoSave(everywhere=True)
    guilds = frozenset(word for word in words if word != "dm")
    for word in sorted(guilds):
        if not (word.isascii() and word.isdigit() and len(word) <= 20):
            raise ValueError(f"{word!r} is not allowed; 0, all, or server ids and dm, divided by commas")
    return AutoSave(guilds=guilds, dms="dm" in words)
