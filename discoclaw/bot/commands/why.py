"""`why`: what the last answer was based on, or where one memory comes from."""

import asyncio
from functools import partial

from discoclaw.bot.answers import Answer, Carded
from discoclaw.bot.cards import reasons as cards
from discoclaw.bot.cards.card import Turn
from discoclaw.bot.commands.call import Call
from discoclaw.bot.commands.choosing import the_one
from discoclaw.bot.links import message_address, source_link, source_words
from discoclaw.bot.texts import history as texts
from discoclaw.bot.texts.markup import said
from discoclaw.bot.texts.memory import line_of
from discoclaw.core.ports import LINKED_WITH
from discoclaw.core.view import EMPTY, View
from discoclaw.core.yours import yours
from discoclaw.session.turn import Shown
from discoclaw.show import text as shown
from discoclaw.show.words import count, short

UNKNOWN_ANSWER = (
    "I no longer know what my last answer to you here was based on. Ask me something, then try again. "
    "`!memory why <words or id>` says where a memory comes from."
)


async def why(call: Call, memory: str | None) -> Answer:
    if not memory or not memory.strip():
        return await _last_answer(call)
    history = await call.history()
    branch = call.persona(history.branches) if history.records else None
    view = history.view(history.branch(branch).head) if branch is not None else EMPTY
    items = view.items.values() if call.in_private else shown.TakenFrom([view]).items(view.items.values())
    item = await the_one(call, items, memory, "why", gone=True)
    text = await asyncio.to_thread(
        texts.why,
        history,
        item,
        link=lambda source: source_link(call.client, source),
        branch=branch,
        in_private=call.in_private,
    )
    if not call.in_private:
        return text
    turn, page = Turn(call.user_id, "why", (item.id,)), call.page
    where = partial(source_words, call.client, words="this message")
    made = partial(cards.of_memory, history, item, turn, where=where, branch=branch, page=page)
    return Carded(await asyncio.to_thread(made), text)


async def _last_answer(call: Call) -> Answer:
    last = _last(call)
    if last is None:
        return UNKNOWN_ANSWER
    text = await explained(call, last, "my last answer to you here")
    if not call.in_private:
        return text
    view = await call.memory.view(call.subject, last.branch)
    used = [(view.items.get(item_id), _chosen(call, view, chosen)) for item_id, chosen in last.items]
    link, turn = (
        message_address(call.place.guild_id, call.place.channel_id, last.answer_id),
        Turn(call.user_id, "why"),
    )
    return Carded(cards.of_answer(used, f"Also {_also(last)}", link, call.where, turn, page=call.page), text)


def _last(call: Call) -> Shown | None:
    """The last answer here; one that only they saw is told of only to them."""
    sessions = [call.session_key, *([call.place.aside().session_key(call.user_id)] if call.slash else [])]
    known = (call.context.explained.last(one, call.user_id) for one in sessions)
    return max((one for one in known if one is not None), key=lambda one: one.at, default=None)


async def explained(call: Call, last: Shown, which: str) -> str:
    """The sources of an answer to somebody, in words."""
    view = await call.memory.view(call.subject, last.branch)
    answer = message_address(call.place.guild_id, call.place.channel_id, last.answer_id)
    lines = [f"For [{which}](<{answer}>) I had:"]
    lines += [_used(call, view, item_id, chosen) for item_id, chosen in last.items] or [
        "- nothing I remember about you"
    ]
    return "\n".join([*lines, f"and {_also(last)}"])


def _also(last: Shown) -> str:
    """The sources of an answer besides memories."""
    besides = ["this conversation's summary" if last.summary else "no summary"]
    besides += [count(last.window, "recent message"), *(count(number, kind) for kind, number in last.files)]
    return f"{', '.join(besides)}, and your message."


def _used(call: Call, view: View, item_id: str, chosen: str) -> str:
    item = view.items.get(item_id)
    if item is None:
        return f"- a memory that is gone since (id {short(item_id)})"
    if not call.may_show(item):
        return f"- a private memory (id {short(item_id)})"
    link = source_link(call.client, item.source)
    where = link if item.source.type == "manual" else f"said in {link}"
    chosen = _chosen(call, view, chosen)
    return f"{line_of(item)}{f'; chosen: {chosen}' if chosen else ''}; {where}"


def _chosen(call: Call, view: View, chosen: str) -> str:
    """Why a memory was chosen. One that came with another memory names that by its words."""
    before, linked, other_id = chosen.partition(LINKED_WITH)
    other = view.items.get(other_id)
    if not linked or other is None:
        return chosen
    return f"{before}{LINKED_WITH}{said(yours(other.text)) if call.may_show(other) else 'a private memory'}"
