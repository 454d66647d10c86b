"""Which places the archive keeps messages from, as an admin set it in DISCOCLAW_AUTO_SAVE. A value."""

from dataclasses import dataclass

from discoclaw.core.message import Place

OFF = {"", "0", "off", "no", "false", "none"}
EVERYWHERE = {"all", "1", "on", "yes", "true"}


@dataclass(frozen=True, slots=True)
class AutoSave:
    """Archive `everywhere`, or on the servers in `guilds` (ids) and, if `dms`, in direct messages.

    Nothing is archived by default: keeping what people say is the admin's decision, not ours.
    """

    everywhere: bool = False
    guilds: frozenset[str] = frozenset()
    dms: bool = False

    def __bool__(self) -> bool:
        return self.everywhere or self.dms or bool(self.guilds)

    def __str__(self) -> str:
        places = ["direct messages"] * self.dms + [f"server {one}" for one in sorted(self.guilds)]
        return "on" if self.everywhere else f"on for {', '.join(places)}" if places else "off"

    def covers(self, place: Place) -> bool:
        """Whether messages from a place are archived. An aside is not: the chat's history has none of it."""
        if place.kind == "aside":
            return False
        if self.everywhere:
            return True
        return self.dms if place.kind == "dm" else place.guild_id in self.guilds


def auto_save(text: str) -> AutoSave:
    """Parse "off", "all", or server ids and "dm" separated by commas or white space.

    Raises ValueError, saying what is allowed.
    """
    words = text.replace(",", " ").lower().split()
    if len(words) <= 1 and (words or [""])[0] in OFF:
        return AutoSave()
    if len(words) == 1 and words[0] in EVERYWHERE:
        return AutoSave(everywhere=True)
    guilds = frozenset(word for word in words if word != "dm")
    for word in sorted(guilds):
        if not (word.isascii() and word.isdigit() and len(word) <= 20):
            raise ValueError(
                f"{word!r} is not allowed; use 0, all, or server ids and dm, separated by commas"
            )
    return AutoSave(guilds=guilds, dms="dm" in words)
