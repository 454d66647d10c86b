"""Texts about the memories that people have now, and about what became of them."""

from collections.abc import Sequence
from dataclasses import replace

from discoclaw.bot.texts.markup import ago, plain, said, words
from discoclaw.core.draft import Resolution
from discoclaw.core.errors import ModelKeyRejected, ModelNotFound
from discoclaw.core.health import Seen
from discoclaw.core.item import Item, Sensitivity
from discoclaw.core.purge import ON_RELAYS
from discoclaw.core.view import Conflict, View
from discoclaw.core.yours import yours
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.memory.erasing.erase import Erased
from discoclaw.show import text as shown
from discoclaw.show.words import count, short

NOT_USED = (
    "**You have opted out**: I learn nothing about you and use nothing I know. "
    "`!memory optin` turns memory on again."
)
NOTHING_YET = "Nothing yet. Try `!memory remember I prefer short answers`."
SUMMARY = "Summary of this conversation"
UNTIL_THEN = "I use the first until you decide: `!memory settle`."
REBUILDING = "being rebuilt. What it said is not used any more; I write it again from our earlier messages."
ON_RELAYS_TOO = (
    "I overwrite my encrypted copies on relays and request their deletion, which a relay may ignore."
)
STOPS = {
    "extraction": ("learning from what you say", "DISCOCLAW_DURABLE_MODEL"),
    "summary": ("writing summaries", "DISCOCLAW_SUMMARY_MODEL"),
}
"""The sentence about a purpose for which no model can be had, and the setting that names that model."""
WHY = {ModelNotFound: "its server doesn't have it any more", ModelKeyRejected: "its server refuses my key"}
ADMIN = "An admin has to look after that. What you say waits until then."
SECRET = "\n(I left out what looks like a secret key.)"


def show(
    view: View,
    rolling: Rolling,
    *,
    in_private: bool,
    rebuilding: bool = False,
    persona: str = "",
    presumed: int = 0,
    notes: Sequence[str] = (),
) -> str:
    """The memories that a person may see here. `in_private`: nobody else reads the answer.

    `rebuilding`: the summary was lost. `persona` is named for somebody who has more than one. `presumed`: so
    many are private only because the file they came in with doesn't say otherwise. `notes` are said below.
    """
    items = view.active()
    visible = [item for item in items if in_private or item.facets.sensitivity == "normal"]
    named = f", persona `{persona}`" if persona else ""
    lines = [f"**What I remember about you** ({count(len(items), 'memory')}{named})"]
    lines += [line_of(item) for item in visible] if items else [NOTHING_YET]
    if hidden := len(items) - len(visible):
        secret = count(hidden, "private memory")
        lines.append(f"({secret}: use `/memory show`, or ask me in a DM)")
    if presumed:
        lines.append(presumed_private(presumed))
    if gone := sum(not item.active for item in view.items.values()):
        lines.append(f"({gone} forgotten, still in your history; `!memory remember <text>` brings one back)")
    lines += to_settle(view, visible, in_private=in_private)
    text, updated = summed_up(rolling, rebuilding=rebuilding)
    title = f"**{SUMMARY}** ({updated})\n" if updated else f"**{SUMMARY}**: "
    return "\n".join([*lines, "", title + text, *notes])


def standstill(seen: Seen, *, owner: bool) -> list[str]:
    """A sentence for each kind of memory that gets nothing new: since when, why, and what to do about it."""
    said = []
    for what, (doing, setting) in STOPS.items():
        if (last := seen.of(what)).stopped:
            why = next((why for kind, why in WHY.items() if issubclass(last.error, kind)), "")
            why = why or ("its server doesn't answer" if last.fails else "its answers can't be used")
            way_out = f"Check `{setting}`; `discoclaw doctor` says more." if owner else ADMIN
            said.append(
                f"**I stopped {doing} {ago(last.since)}**: I need a small model for it, and {why}. {way_out}"
            )
    return said


def summed_up(rolling: Rolling, *, rebuilding: bool) -> tuple[str, str]:
    """The summary of a conversation, or why there is none, and when it was updated ("" if there is none)."""
    if rolling.summary:
        return rolling.summary, f"updated {ago(rolling.updated_at)}"
    return (REBUILDING if rebuilding else "none yet"), ""


def line_of(item: Item) -> str:
    """One item with its id: `- [fact] text (id 2ed36192, updated 2 hours ago, private)`."""
    secret = "" if item.facets.sensitivity == "normal" else f", {item.facets.sensitivity}"
    gone = "" if item.active else ", forgotten"
    when = f"updated {ago(item.updated_at)}"
    return f"- [{item.kind}] {words(yours(item.text))} (id {short(item.id)}, {when}{secret}{gone})"


def to_settle(view: View, visible: Sequence[Item], *, in_private: bool) -> list[str]:
    """Lines about what contradicts a memory that is shown."""
    ids = {item.id for item in visible}
    lines = []
    for conflict in view.conflicts:
        if conflict.item_id in ids and (conflict.sensitivity == "normal" or in_private):
            question = plain(shown.conflict(*asked(view, conflict), in_private=in_private))
            lines.append(f"- {question}. {UNTIL_THEN}")
    return ["", "**To settle**", *lines] if lines else []


def asked(view: View, conflict: Conflict) -> tuple[View, Conflict]:
    """A question, with what it is about, as its person reads it."""
    both = [view.items[one] for one in (conflict.item_id, conflict.other_id) if one in view.items]
    items = {item.id: replace(item, text=yours(item.text)) for item in both}
    return replace(view, items=items), replace(conflict, text=yours(conflict.text))


def forgotten(items: Sequence[Item]) -> str:
    if len(items) == 1:
        return f"Forgotten: {words(yours(items[0].text))}"
    lines = "\n".join(f"- {words(yours(item.text))}" for item in items)
    return f"Forgotten: {count(len(items), 'memory')}; `!memory undo` brings them back.\n{lines}"


def halved(parts: Sequence[str]) -> str:
    return "Remembered as two: " + " ".join(words(yours(part)) for part in parts)


def edited(before: Item, after: Item, *, shown: bool) -> str:
    """The result of an edit; without words if the item may not be `shown` here."""
    if not shown:
        return "Edited. It's private now."
    return f"Edited: {words(yours(before.text))} → {words(yours(after.text))}"


def marked(items: Sequence[Item], secret: Sensitivity, *, by_id: bool = True) -> str:
    """The decision about where to use items, whose text is not repeated; `by_id` names them instead."""
    where = "everywhere" if secret == "normal" else "in our DMs only"
    which = "that memory" if len(items) == 1 else f"these {count(len(items), 'memory')}"
    ids = ", ".join(short(item.id) for item in items)
    return f"From now on I use {which} {where}{f' (id {ids})' if by_id else ''}."


def remembered(item: Item) -> str:
    return f"Remembered: {words(yours(item.text))}{kept_private(item)}"


def kept_private(item: Item, *, by_id: bool = True) -> str:
    """The note about a private memory: how to use it everywhere, by its id."""
    if item.facets.sensitivity == "normal":
        return ""
    if not by_id:
        return "\n(private: I use it in our DMs only)"
    return f"\n(private: I use it in our DMs only; `!memory share {short(item.id)}` changes that)"


def personal_in_the_open(item: Item) -> str:
    """The note about a personal matter that somebody stated where others read it."""
    return f"\n(used in every channel; `!memory private {short(item.id)}` keeps it between us)"


def presumed_private(number: int) -> str:
    """The note about memories that are private only because their file doesn't say that they are open."""
    return (
        f"(From files that don't say where you said it: {count(number, 'memory')}, which I use in our DMs "
        "only; `!memory share imported` changes that)"
    )


def settled(before: str, conflict: Conflict, how: Resolution) -> str:
    """The outcome of a conflict about an item that said `before`."""
    old, new = said(yours(before)), said(yours(conflict.text))
    if how == "keep_old":
        return f"Settled: I keep {old}."
    if how == "both_valid":
        return f"Settled: I keep both, {old} and {new}."
    if conflict.text:
        return f"Settled: from now on I use {new}."
    return f"Settled: I forgot {old}."


def erased(done: Erased, *, own: bool) -> str:
    """The result of an erasing, and what is still to come."""
    text = f"I erased everything I remembered about {'you' if own else 'them'}."
    if done.waiting:
        text = (
            f"I'm erasing everything I remember about {'you' if own else 'them'}, but I'm not done yet: "
            "another part of me doesn't answer. I keep trying, and remember nothing until then."
        )
    text += " Messages in Discord itself are still there."
    if done.soul:
        text += f" My personality is gone too, because it was based on what {'you' if own else 'they'} said."
    if done.left:
        text += " Some files couldn't be removed yet. I keep trying, and remember nothing until then."
    if ON_RELAYS in done.todo:
        text += f" {ON_RELAYS_TOO}"
    return text
