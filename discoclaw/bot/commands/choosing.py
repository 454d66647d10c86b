"""Which memories somebody means: by id, key or text at once, by some of their words after a question.

The question has buttons and a menu (`naming`), and whoever answers it gives the same command again, with
`Call.asked`. For a command that takes several it is a list: what is likely meant is ticked, what came near is
not, and "1 3" as text names two of the list that was shown last.
"""

from collections.abc import Collection, Iterable, Sequence

import discord

from discoclaw.bot import naming
from discoclaw.bot.answers import Unclear
from discoclaw.bot.commands.call import Call
from discoclaw.bot.memories import Asked, stamp
from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Item
from discoclaw.core.text import utf16_length
from discoclaw.core.yours import yours
from discoclaw.recall.named_items import Found, find, has_all, named
from discoclaw.show.markup import said
from discoclaw.store.files import read_in_thread

READS = "why"
"""The command that changes nothing: if one memory matches, it needs no question."""
_LONGEST = 2000


async def those(
    call: Call, items: Collection[Item], wanted: str, verb: str, *, unseen: bool = False
) -> list[Item]:
    """The memories that are meant, one or several. Raises Unclear, which is a question, if not certain.

    `unseen`: one that may not be shown here counts too, if it is named exactly, since its text is not
    repeated. `verb` is the command that asks.
    """
    if call.asked is not None:
        return _as_asked(call, items, call.asked, unseen=unseen)
    if (certain := _certain(call, items, wanted, unseen=unseen)) is not None:
        return [certain]
    key = call.user_id, call.session_key
    if (stamps := call.context.listed.numbered(key, wanted)) is not None:
        branch = call.persona_here or (await call.memory.branches(call.subject)).current
        return _as_asked(call, items, Asked(verb, ",".join(stamps), branch), unseen=unseen)
    found, hidden = await _shown(call, items, wanted, verb)
    if len(found.meant) == 1 and not found.near:
        raise await _question(call, verb, found.meant, naming.one(verb, found.meant[0], hidden=hidden))
    if not found.meant and len(found.near) == 1:
        raise await _question(call, verb, found.near, naming.near(found.near[0]))
    ticked = {item.id for item in found.meant}
    every = [*found.meant, *found.near]
    call.context.listed.keep(key, map(stamp, every))
    page = max(1, min(call.page, -(-len(every) // naming.ON_A_PAGE)))
    text = naming.listed(verb, wanted, every, ticked, page, hidden=hidden, by_text=not call.slash)
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    raise Unclear(naming.about_list(text, call.user_id, verb, every, ticked, branch, page))


async def the_one(
    call: Call, items: Collection[Item], wanted: str, verb: str, *, gone: bool = False, new: str = ""
) -> Item:
    """The one memory that is meant. Raises Unclear, which is a question, if that is not certain.

    `gone`: one that was forgotten counts too, by its id. `new` is what the memory shall say then.
    """
    if call.asked is not None:
        return _as_asked(call, items, call.asked, gone=gone)[0]
    if (certain := _certain(call, items, wanted, gone=gone)) is not None:
        return certain
    found, hidden = await _shown(call, items, wanted, verb)
    if verb == READS and len(found.meant) == 1:
        return found.meant[0]
    every = [*found.meant, *found.near]
    if len(every) > 1:
        text = naming.several(verb, len(every), new=new, hidden=hidden)
    elif found.meant:
        text = naming.one(verb, every[0], new=new, hidden=hidden)
    else:
        text = naming.near(every[0], new=new)
    raise await _question(call, verb, every, text)


def _certain(
    call: Call, items: Iterable[Item], wanted: str, *, gone: bool = False, unseen: bool = False
) -> Item | None:
    """The item that is named exactly. A list that is turned acts on nothing."""
    if isinstance(call.source, discord.Interaction) and call.source.message is not None:
        return None
    return named([one for one in items if (gone or one.active) and (unseen or call.may_show(one))], wanted)


async def _shown(call: Call, items: Iterable[Item], wanted: str, verb: str) -> tuple[Found, int]:
    """The items found of those that may be shown, and how many others have all the words.

    Raises Unclear if there is nothing to show.
    """
    active = [item for item in items if item.active]
    # Ten thousand memories take seconds, in which everybody else is answered.
    found = await read_in_thread(find, [item for item in active if call.may_show(item)], wanted)
    others = [item for item in active if not call.may_show(item)]
    hidden = sum(has_all(item, wanted) for item in others) or int(named(others, wanted) is not None)
    if found.certain is not None:  # a list that is turned acts on nothing
        found = Found(meant=(found.certain,))
    if not (found.meant or found.near):
        raise Unclear(naming.only_private(hidden, verb) if hidden else naming.nothing(wanted))
    return found, hidden


async def _question(call: Call, verb: str, items: Sequence[Item], text: str) -> Unclear:
    """The question with its buttons for one memory, with a menu for several."""
    if utf16_length(text) > _LONGEST:
        return Unclear(naming.too_long(items))
    branch = call.persona_here or (await call.memory.branches(call.subject)).current
    if len(items) == 1:
        return Unclear(naming.about_one(text, call.user_id, verb, items[0], branch))
    return Unclear(naming.about_several(text, call.user_id, verb, items, branch))


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


def _as_asked(
    call: Call, items: Iterable[Item], asked: Asked, *, gone: bool = False, unseen: bool = False
) -> list[Item]:
    """The memories that a question was about, without those that are no longer as the person was shown them.

    Raises Refused if none is.
    """
    known, found, refused = list(items), [], Refused("")
    for one in asked.each():
        try:
            item = as_shown(call, known, one, gone=gone, unseen=unseen)
            if stamp(item) != one.item and not gone:
                now = f"; it says now {said(yours(item.text))}" if call.may_show(item) else ""
                raise Refused(f"that memory has changed since I asked, so I left it as it is{now}")
            found.append(item)
        except Refused as refusal:
            refused = refusal
    if not found:
        raise refused
    return found


def still(draft: Draft, meant: Item) -> Item:
    """The item that was found a moment ago. Raises Refused if it has gone or changed since."""
    item = draft.items.get(meant.id)
    if item is None or not item.active:
        raise Refused("that memory has just been forgotten")
    if item.text != meant.text:
        raise Refused("that memory has just changed, so I left it as it is; please try again")
    return item
