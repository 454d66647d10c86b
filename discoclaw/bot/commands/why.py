"""`why`: what the last answer was based on, or where one memory comes from."""

import asyncio
from dataclasses import replace
from functools import partial

from discoclaw.bot.commands.call import Call
from discoclaw.bot.links import message_address, source_of_event
from discoclaw.commands.history import told, when
from discoclaw.commands.memories import Where, row_of
from discoclaw.core.event import Commit, Event
from discoclaw.core.history import History
from discoclaw.core.item import Item
from discoclaw.core.ports import LINKED_WITH
from discoclaw.core.view import EMPTY
from discoclaw.core.yours import yours
from discoclaw.session.agent import Shown
from discoclaw.show import text as shown
from discoclaw.show.answer import GREY, Answer, Reply, Row, Turn
from discoclaw.show.markup import for_people, said
from discoclaw.show.words import count, short, word

UNKNOWN_ANSWER = (
    "I no longer know what my last answer to you here was based on. Ask me something, then try again. "
    "`!memory why <words or id>` says where a memory comes from."
)


async def why(call: Call, memory: str | None) -> Reply:
    if not memory or not memory.strip():
        if (last := _last(call)) is None:
            return UNKNOWN_ANSWER
        answer = await explained(call, last, "my last answer")
        return replace(answer, turn=Turn(call.user_id, "why"), page=call.page)
    history = await call.history()
    branch = call.persona(history.branches) if history.records else None
    view = history.view(history.branch(branch).head) if branch is not None else EMPTY
    items = view.items.values() if call.in_private else shown.TakenFrom([view]).items(view.items.values())
    item = await call.the_one(items, memory, "why", gone=True)
    told_by = await asyncio.to_thread(_reasons, call, history, item, branch)
    return Answer(
        "Where this comes from",
        [row_of(item), *(told_by or [Row("Your history doesn't say where it came from.")])],
        turn=Turn(call.user_id, "why", (item.id,)),
        page=call.page,
        colour=GREY,
    )


# ---------------------------------------------------------------------- an answer


def _last(call: Call) -> Shown | None:
    """The last answer here; one that only they saw is told of only to them."""
    sessions = [call.session_key, *([call.place.aside().session_key(call.user_id)] if call.slash else [])]
    known = (call.context.explained.last(one, call.user_id) for one in sessions)
    return max((one for one in known if one is not None), key=lambda one: one.at, default=None)


async def explained(call: Call, last: Shown, which: str) -> Answer:
    """The memories that an answer to somebody had, each with why it was chosen, and what else it had."""
    view = await call.memory.view(call.subject, last.branch)
    link = message_address(call.place.guild_id, call.place.channel_id, last.answer_id)
    rows = []
    for item_id, why_chosen in last.items:
        item = view.items.get(item_id)
        if item is None:
            rows.append(
                Row(
                    "*a memory that is gone since*",
                    line=f"- a memory that is gone since (id {short(item_id)})",
                )
            )
            continue
        if not call.may_show(item):
            rows.append(Row("", line=f"- a private memory (id {short(item_id)})"))
            continue
        # One that came with another memory names that by its words.
        chosen, (before, linked, other_id) = why_chosen, why_chosen.partition(LINKED_WITH)
        if linked and (other := view.items.get(other_id)) is not None:
            named = said(yours(other.text)) if call.may_show(other) else "a private memory"
            chosen = f"{before}{LINKED_WITH}{named}"
        row, place = row_of(item, call.where), call.where(item.source)
        place = place if item.source.type == "manual" else f"said in {place}"
        small = filter(None, (row.small, f"chosen: {for_people(chosen)}" if chosen else ""))
        line = f"{row.line}{f'; chosen: {chosen}' if chosen else ''}; {place}"
        rows.append(replace(row, small=" · ".join(small), line=line))
    besides = ["this conversation's summary" if last.summary else "no summary"]
    besides += [count(last.window, "recent message"), *(count(number, kind) for kind, number in last.files)]
    return Answer(
        f"What {which} was based on",
        rows or [Row("Nothing I remember about you.")],
        small=[f"[{which} here]({link})"],
        foot=[f"Also {', '.join(besides)}, and your message."],
        colour=GREY,
    )


# ---------------------------------------------------------------------- a memory


def _reasons(call: Call, history: History, item: Item, branch: str | None) -> list[Row]:
    """Every event that touched an item, oldest first, with when, where and why it happened.

    `branch` leaves out what other personas did. Raises Refused when there is no such branch.
    """
    secrets = shown.Secrets(history, in_private=call.in_private, branch=branch)
    where = partial(call.where, words="this message")
    item, rows = secrets.item(item), []
    for commit in shown.commits_of(history, branch):
        for event in commit.events:
            if secrets.target(event) == item.id:
                because = _because(event, secrets)
                about = filter(None, (when(commit), _origin(commit, event, where), because))
                rows.append(Row(told(event, secrets), " · ".join(about)))
    return rows


def _because(event: Event, secrets: shown.Secrets) -> str:
    if not event.evidence or _is_place(event.evidence):
        return ""
    return f"because: {secrets.instead_of_evidence(event) or said(event.evidence)}"


def _origin(commit: Commit, event: Event, where: Where) -> str:
    kind = event.source.partition(":")[0]
    stated = event.ext.get("facets", {}).get("author") == "stated"
    who = "you said so" if stated else "I concluded it"
    if commit.metadata.get("by") == "menu":
        who = "you chose it"
    if kind == "discord":
        return f"{who}, in {where(source_of_event(event.source))}"
    if kind != "manual":
        return f"{who}, {word(event.source)}"
    at = commit.metadata.get("at")
    there = f", in {where(source_of_event(f'discord:{at}'))}" if isinstance(at, str) and _is_place(at) else ""
    return f"you told me directly{there}" if stated else f"set directly{there}"


def _is_place(text: str) -> bool:
    channel, _, message = text.partition("/")
    return channel.isdigit() and message.isdigit()
