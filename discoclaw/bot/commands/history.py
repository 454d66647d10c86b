"""What people do with their history: look at what changed, and go back in it.

What they read is made by `texts.history` and `show`; what is done is in `memory/subjects/verbs`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from io import BytesIO
from typing import Any

import discord

from discoclaw.bot.answers import Answer, Carded, Page
from discoclaw.bot.cards import history as cards
from discoclaw.bot.cards import memories
from discoclaw.bot.cards.card import Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.texts import history as texts
from discoclaw.bot.texts.markup import block, words
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit
from discoclaw.core.history import History
from discoclaw.core.merge import ItemChange, MergeResult, diff
from discoclaw.core.text import utf16_length
from discoclaw.core.view import EMPTY, View
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import held, view_at
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import graph
from discoclaw.show import text as shown
from discoclaw.show.text import hidden as hidden_of
from discoclaw.show.words import PEOPLE, count
from discoclaw.store.files import read_in_thread

WHOLE_AS_TEXT = 1900
"""The longest diagram, in UTF-16 units, that stands in the message itself; a longer one is a file."""


# ---------------------------------------------------------------------- looking


async def log(call: Call, oneline: bool, limit: int, persona: str | None) -> Answer:
    history = await call.history()
    branch = call.persona(history.branches, persona) if history.records else None
    wanted: dict[str, Any] = {"branch": branch, "oneline": oneline, "limit": limit}
    text = await asyncio.to_thread(texts.log, history, in_private=call.in_private, **wanted)
    if not call.in_private:
        return text
    turn = Turn(call.user_id, "history log", (oneline, limit, persona))
    return Carded(await asyncio.to_thread(cards.log, history, turn, page=call.page, **wanted), text)


async def view(call: Call, at: str | None, persona: str | None) -> Answer:
    hidden: frozenset[str] = frozenset()
    if at is None and persona is None:
        found = await call.memory.view(call.subject, call.persona_here)
        taken = shown.TakenFrom([found])
    else:
        history = await call.history()
        # Without a persona, a date shows the one that was current then: today's may be newer than the date.
        branch = call.persona(history.branches, persona) if persona or call.persona_here else None
        found, hidden = await asyncio.to_thread(_then, history, at or "HEAD", branch)
        if at is not None and not found.items:
            return texts.NOTHING_THEN
        taken = await asyncio.to_thread(shown.taken_from, history, branch)
    found = found if call.in_private else taken.view(found)
    text = texts.view(found, in_private=call.in_private, hidden=hidden)
    if not call.in_private:
        return text
    turn = Turn(call.user_id, "history view", (at, persona))
    return Carded(memories.at_a_point(found, turn, call.where, at=at, page=call.page), text)


async def difference(call: Call, start: str | None, end: str | None) -> Answer:
    history = await call.history()
    branch, here = call.persona(history.branches), call.persona_here
    found, hidden = await asyncio.to_thread(_difference, history, branch, here, start, end)
    if not call.in_private:
        found = (await asyncio.to_thread(shown.taken_from, history, None)).changes(found)
    text = texts.changes(found, in_private=call.in_private, hidden=hidden)
    if not call.in_private:
        return text
    turn = Turn(call.user_id, "history diff", (start, end))
    return Carded(cards.difference(found, turn, page=call.page), text)


async def draw(call: Call, form: str) -> Answer:
    history = await call.history()
    if not history.commits:
        raise Refused("there is nothing to draw yet, because I remember nothing about you")
    history = await asyncio.to_thread(_told, history, in_private=call.in_private)
    if form == "timeline":
        return block(await asyncio.to_thread(graph.timeline, history, words=PEOPLE))
    if form == "mermaid":
        return await _as_mermaid(history)
    title = f"Memory of {call.author.display_name}"
    drawn = await asyncio.to_thread(_png, history, title)
    number = len(history.commits)
    text = f"{count(number, 'change')}. `!memory graph mermaid` gives the diagram as text."
    page = Page(text, files=(discord.File(BytesIO(drawn), filename="memory.png"),))
    return Carded(cards.drawn(drawn, number, words(title)), [page]) if call.in_private else [page]


def _told(history: History, *, in_private: bool) -> History:
    """A history for drawing: each commit's message says what it changed."""
    done = texts.teller(history, in_private=in_private)
    records = history.records
    return History(replace(one, message=done(one)) if isinstance(one, Commit) else one for one in records)


def _png(history: History, title: str) -> bytes:
    from discoclaw.show.picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(history, title=title)


async def _as_mermaid(history: History) -> Sequence[Page]:
    """The diagram as text, for programs that draw it; a long one as a file."""
    mermaid = await asyncio.to_thread(graph.mermaid, history)
    text = block(mermaid, "mermaid")
    if utf16_length(text) <= WHOLE_AS_TEXT:
        return [Page(text)]
    file = discord.File(BytesIO(mermaid.encode()), filename="memory.mmd")
    return [Page(f"{count(len(history.commits), 'change')}: the diagram is in `memory.mmd`.", files=(file,))]


async def verify(call: Call) -> str:
    assert isinstance(call.memory, Memory)  # the command needs one
    found = await read_in_thread(held, call.memory.disk, call.subject)
    return texts.damaged(found.faults) if found.faults else texts.intact(len(found.commits))


def _then(history: History, at: str, branch: str | None) -> tuple[View, frozenset[str]]:
    """The view at a point, and the items that are shown in private only."""
    return view_at(history, at, branch=branch), hidden_of(history)


def _difference(
    history: History, branch: str, here: str | None, start: str | None, end: str | None
) -> tuple[list[ItemChange], frozenset[str]]:
    """The differences between two points of a persona; between one and now; or by the last change.

    Where a place has no persona of its own (`here`), a date means the one that was current then.
    """
    head = history.branch(branch).head
    if start is not None:
        old = view_at(history, start, branch=here)
    else:
        chain = history.chain(head)
        old = history.view(chain[-2].id) if len(chain) > 1 else EMPTY
    new = view_at(history, end, branch=here) if end is not None else history.view(head)
    return diff(old, new), hidden_of(history)


# ---------------------------------------------------------------------- going back


async def undo(call: Call) -> str:
    branch = call.persona(await call.memory.branches(call.subject))
    done = await verbs.undo(call.memory, call.subject, call.origin(), branch=branch, **call.metadata)
    return texts.brought(done, in_private=call.in_private)


async def revert(call: Call, change: str) -> str:
    return await _go_back(call, verbs.revert, change)


async def restore(call: Call, change: str) -> str:
    return await _go_back(call, verbs.restore, change)


async def _go_back(call: Call, verb: Callable[..., Awaitable[MergeResult]], change: str) -> str:
    branch = call.persona(await call.memory.branches(call.subject))
    done = await verb(call.memory, call.subject, change, call.origin(), branch=branch, **call.metadata)
    return texts.brought(done, in_private=call.in_private)
