"""Which memory somebody means: by its id, its key or its text at once, by some of its words after a question.

The question has buttons or a menu (`buttons`), and whoever answers it gives the same command again, with
`Call.asked`.
"""

from collections.abc import Collection, Iterable, Sequence

from discoclaw.bot.answers import Unclear
from discoclaw.bot.asked import Asked, stamp
from discoclaw.bot.buttons import menu_view, one_view
from discoclaw.bot.commands.call import Call
from discoclaw.bot.texts import naming
from discoclaw.bot.texts.markup import said
from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item, by_newest
from discoclaw.core.matching import find_one
from discoclaw.core.text import utf16_length
from discoclaw.recall.meant import like, nearest

READS = "why"
"""The command that changes nothing: if one memory matches, it needs no question."""
_LONGEST = 2000


async def the_one(
    call: Call,
    items: Collection[Item],
    wanted: str,
    verb: str,
    *,
    gone: bool = False,
    unseen: bool = False,
    new: str = "",
) -> Item:
    """The one memory that is meant. Raises Unclear, which is a question, if that is not certain.

    `gone`: one that was forgotten counts too, by its id. `unseen`: one that may not be shown here counts too,
    if it is named exactly, since its text is not repeated. `verb` is the command that asks, and `new` what
    it shall say then.
    """
    if call.asked is not None:
        return _as_asked(call, items, call.asked, gone=gone, unseen=unseen)
    known = [item for item in items if gone or item.active]
    found = find_one([item for item in known if unseen or call.may_show(item)], wanted)
    if len(found) == 1:
        return found[0]
    active = [item for item in known if item.active]
    if not found:  # what may not be shown here is found too, and only counted
        named = {item.id: item for item in (*find_one(active, wanted), *like(active, wanted))}
        found = [*named.values()]
    shown = sorted(filter(call.may_show, found), key=by_newest)
    hidden = len(found) - len(shown)
    if hidden and not shown:
        raise Unclear(naming.only_private(hidden, verb))
    if not shown:
        near = nearest([item for item in active if call.may_show(item)], wanted)
        if near is None:
            raise Unclear(naming.nothing(wanted))
        raise await _question(call, verb, [near], naming.near(near, new=new))
    if len(shown) > 1:
        text = naming.several(verb, len(shown), new=new, hidden=hidden)
        raise await _question(call, verb, shown, text)
    if verb == READS:
        return shown[0]
    raise await _question(call, verb, shown, naming.one(verb, shown[0], new=new, hidden=hidden))


async def _question(call: Call, verb: str, items: Sequence[Item], text: str) -> Unclear:
    """The question with its buttons for one memory, with a menu for several."""
    if utf16_length(text) > _LONGEST:
        return Unclear(naming.too_long(items))
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    if len(items) == 1:
        return Unclear(text, one_view(call.user_id, verb, items[0], branch))
    return Unclear(text, menu_view(call.user_id, verb, items, branch))


def as_shown(
    call: Call, items: Iterable[Item], asked: Asked, *, gone: bool = False, unseen: bool = False
) -> Item:
    """The memory that somebody was shown, whatever it says now. Raises Refused if it can't be shown."""
    item = next((one for one in items if asked.names(one)), None)
    if item is None or not (gone or item.active):
        raise Refused("that memory was forgotten since I asked")
    if not (unseen or call.may_show(item)):
        raise Refused(f"that memory is private now; use `/memory {asked.verb}`, or ask me in a DM")
    return item


def _as_asked(call: Call, items: Iterable[Item], asked: Asked, *, gone: bool, unseen: bool) -> Item:
    """The memory that a question was about. Raises Refused if it is no longer as the person was shown it."""
    item = as_shown(call, items, asked, gone=gone, unseen=unseen)
    if stamp(item) != asked.item and not gone:
        now = f"; it says now {said(item.text)}" if call.may_show(item) else ""
        raise Refused(f"that memory has changed since I asked, so I left it as it is{now}")
    return item


def still(draft: Draft, meant: Item) -> Item:
    """The item that was found a moment ago. Raises Refused if it has gone or changed since."""
    item = draft.items.get(meant.id)
    if item is None or not item.active:
        raise Refused("that memory has just been forgotten")
    if item.text != meant.text:
        raise Refused("that memory has just changed, so I left it as it is; please try again")
    return item
