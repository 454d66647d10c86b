"""Short ways to feed the loops."""

from collections.abc import Iterable

from discoclaw.core.message import Place, Said
from discoclaw.core.patch import Deprecation, Patch, Upsert
from discoclaw.loops.schedule import Loops
from tests.session.scene import GENERAL


def hear(
    loops: Loops, messages: Iterable[Said], place: Place = GENERAL, *, window: int = 20, key: str = ""
) -> None:
    """Let messages be heard in a place."""
    for one in messages:
        loops.hear(one, place, key or place.session_key(one.author_id), window=window)


def upsert(text: str, *, kind: str = "preference", source: str = "", quote: str = "", **given) -> Patch:
    """A patch that proposes one item. What it lacks to cite is filled in by the scripted model (`citing`)."""
    return Patch(upserts=[Upsert(kind=kind, text=text, source=source, quote=quote, **given)])


def deprecation(*, id: str | None = None, text: str | None = None) -> Patch:
    return Patch(
        deprecations=[Deprecation(id=id, matchText=text, reason="no longer so", source="", quote="")]
    )
