"""“What was learned from this?”: the memories of the person who asks that rest on a message.

Whoever wrote the message, nobody sees other people's memories. What is found can be forgotten below.
"""

from collections.abc import Iterator, Sequence

import discord

from discoclaw.bot import wire
from discoclaw.bot.answers import Answer, Page
from discoclaw.bot.buttons import menu_view, one_view
from discoclaw.bot.commands.call import Call
from discoclaw.bot.texts import menus as texts
from discoclaw.core.history import History
from discoclaw.core.item import Item, by_newest
from discoclaw.core.view import View
from discoclaw.show import text as shown

FORGET = "forget"
"""The command that the buttons give."""


async def learned(call: Call, message: discord.Message) -> Answer:
    history = await call.history()
    branch = call.persona(history.branches) if history.records else None
    at = f"{call.place.channel_id}/{message.id}"
    items: list[Item] = []
    pending = 0
    if branch is not None:
        view = history.view(history.branch(branch).head)
        items = sorted(_resting_on(history, view, branch, at), key=by_newest)
        pending = sum(str(one.item.source) == f"discord:{at}" for one in view.pending)
    if branch is None or not (items or pending):
        return _why_nothing(call, message)
    return [Page(texts.learned(items, pending), view=_below(call, items, branch))]


def _below(call: Call, items: Sequence[Item], branch: str) -> discord.ui.View | None:
    """The buttons that forget one of them, the same as `forget` asks with."""
    active = [item for item in items if item.active]
    if not active:
        return None
    if len(active) == 1:
        return one_view(call.user_id, FORGET, active[0], branch)
    return menu_view(call.user_id, FORGET, active, branch)


def _resting_on(history: History, view: View, branch: str, at: str) -> Iterator[Item]:
    """The items that a change of the person's memory made from a message, or from a command in it."""
    secrets, found = shown.Secrets(history, in_private=True, branch=branch), set[str]()
    for commit in shown.commits_of(history, branch):
        for event in commit.events:
            if event.source == f"discord:{at}" or event.evidence == at:
                found.add(secrets.target(event))
    return (item for key, item in view.items.items() if key in found)


def _why_nothing(call: Call, message: discord.Message) -> str:
    """That nothing was learned, and why if that is known."""
    client, author = call.client, wire.author_id(message)
    if client.user is not None and author == str(client.user.id):
        return texts.NOT_FROM_MINE
    if author != call.user_id:
        return texts.OF_OTHERS
    if call.context.choices.opted_out(author):
        return texts.OPTED_OUT
    if not client.listens(message.channel):
        return texts.DEAF
    if not client.settings.extraction_enabled:
        return texts.NOT_LEARNING
    return texts.WAITS if call.context.loops.tracks.waits(author, str(message.id)) else texts.NOTHING
