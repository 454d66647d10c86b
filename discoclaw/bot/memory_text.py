"""What people are shown of their memory: texts only, no Discord objects."""

import re
from collections.abc import Sequence

from discoclaw.core.draft import Resolution
from discoclaw.core.item import Item
from discoclaw.core.text import clip, utf16_length
from discoclaw.core.times import date_of, iso_ms
from discoclaw.core.view import Conflict, View
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.memory.erasing.erase import Erased
from discoclaw.show import text as shown

HELP = """\
**What I remember, and how you change it** (each also works as a slash command, `/memory …`)
`!memory show` – what I remember of you, and this conversation's summary
`!memory remember <text>` – remember something
`!memory forget <text or id>` – no longer use it (at least 60 % of its text, or its id)
`!memory edit <text or id> => <new text>` – put it differently
`!memory undo` – take back the last change
`!memory why` – what my last answer was given, and where that comes from
`!memory share <text or id>`, `!memory private <text or id>` – use it everywhere, or in our DMs only
`!memory reset rolling` – clear the summary of this conversation
`!memory export`, `!memory erase`, `!memory optout` – take it with you, destroy it, or have none
`!memory help all` – everything else: history, personas, questions
Ordinary talk works too: “please remember that …”."""

HELP_ALL = f"""\
{HELP}

**History** (a point is a commit's id, `HEAD~1`, a persona or a date)
`!memory log [--oneline] [--limit n] [persona]` – what changed, newest first
`!memory view [--at <point>] [--branch <persona>]` – what I remember now, or remembered then
`!memory diff [<from> [<to>]]` – what differs
`!memory why <text or id>` – where an item comes from
`!memory graph [timeline]` – the history as a picture, or as text
`!memory revert <commit>` – take one change back; `!memory restore <commit>` – be again as it was then
`!memory stats`, `!memory verify` – figures, and whether all is whole

**Personas** (separate memories; as slash commands below `/memory branch`)
`!memory branches`, `!memory checkout <persona>` – list, switch
`!memory create-branch <name> [description]`, `!memory delete-branch <persona>`
`!memory merge <persona>`, `!memory cherry-pick <commit>` – bring its changes here
`!memory autoswitch on|off` – whether I may switch by myself

**Questions and tidying**
`!memory settle` – what contradicts itself, with buttons
`!memory consolidate` – look for duplicates and contradictions now

**Yours**
`!memory export [json|markdown|objects] [--history]` – as a file, in a DM
`!memory import` with a file – remember what an export says
`!memory erase [--yes]` – destroy everything, for good
`!memory optout`, `!memory optin` – no memory of you, or one again

**For my owners**
`!hatch` – give me a personality, in a short interview
`!hatch show`, `!hatch undo`, `!hatch cancel` – see it, take its last change back, end the interview
`!nostr`, `!nostr push` – how my encrypted mirror is doing; bring it up to date now"""

NOTE = "-# "
"""How lines of ours begin that are no talk: small print in Discord, and left out of the window."""
NOT_USED = "**You have opted out**: nothing is learned of you or used. `!memory optin` switches it on again."

_MARKDOWN = re.compile(r"[*_~|\\`[]")

MORE = "({count} more items on disk)"


def block(text: str, language: str = "") -> str:
    """Text as it is, in a code block that nothing in it can end."""
    tame = text.replace("```", "'''")
    return f"```{language}\n{tame}\n```"


def plain(text: str) -> str:
    """Words as they are: nothing in them is markup."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def show(view: View, rolling: Rolling, *, in_private: bool, persona: str = "") -> str:
    """Everything a person may see of their memory here. `in_private`: nobody else reads the answer.

    `persona` is named for somebody who has more than one.
    """
    items = view.active()
    visible = [item for item in items if in_private or item.facets.sensitivity == "normal"]
    of = f", persona `{persona}`" if persona else ""
    lines = [f"**Durable memory** ({_count(len(items))}{of})"]
    lines += [line_of(item) for item in visible] or [
        "Nothing yet. Try `!memory remember I prefer short answers`."
    ]
    if hidden := len(items) - len(visible):
        lines.append(f"({_count(hidden, 'private item')}: use `/memory show`, or ask me in a DM)")
    deprecated = sum(1 for item in view.items.values() if not item.active)
    if deprecated:
        lines.append(f"({deprecated} forgotten, kept on disk; `!memory remember <text>` brings one back)")
    lines += _conflicts(view, visible, in_private=in_private)
    lines.append("")
    if rolling.summary:
        lines += [f"**Conversation memory** (updated {iso_ms(rolling.updated_at)[:16]}Z)", rolling.summary]
    else:
        lines.append("**Conversation memory**: no summary of this conversation yet")
    return "\n".join(lines)


def _count(number: int, thing: str = "item") -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def line_of(item: Item) -> str:
    """One item with its id: `- [fact] text (id 2ed36192, updated 2026-02-09, private)`."""
    secret = "" if item.facets.sensitivity == "normal" else f", {item.facets.sensitivity}"
    short = item.id.removeprefix("durable-")
    return f"- [{item.kind}] {item.text} (id {short}, updated {date_of(item.updated_at)}{secret})"


def _conflicts(view: View, shown_items: Sequence[Item], *, in_private: bool) -> list[str]:
    """What contradicts something that is remembered."""
    by_id = {item.id: item for item in shown_items}
    lines = []
    for conflict in view.conflicts:
        item = by_id.get(conflict.item_id)
        if item is None or (conflict.sensitivity != "normal" and not in_private):
            continue
        question = shown.conflict(view, conflict, in_private=in_private)
        lines.append(f"- {question}. I keep the first until you say otherwise: `!memory settle`.")
    return ["", "**To settle**", *lines] if lines else []


def settled(held: str, conflict: Conflict, how: Resolution) -> str:
    """What became of a conflict about an item that said `held`."""
    if how == "keep_old":
        return f"Settled: I keep “{held}”."
    if how == "both_valid":
        return f"Settled: both hold, “{held}” and “{conflict.text}”."
    return f"Settled: I use “{conflict.text}” now." if conflict.text else f"Settled: “{held}” is forgotten."


def erased(done: Erased, *, own: bool) -> str:
    """What an erasing did, and what of it is still to come."""
    whom = "you" if own else "them"
    text = f"Everything I remembered of {whom} is erased. What was said in Discord stays there."
    if done.soul:
        text += f" My personality went with it, since it rested on what {'you' if own else 'they'} told me."
    if done.left:
        return f"{text} Some files could not be removed yet; I try again, and remember nothing until then."
    return text


def snapshot(name: str, user_id: str, view: View, rolling: Rolling, place: str, *, limit: int = 2000) -> str:
    """A person's memory for the transparency channel, at most `limit` UTF-16 units, never split.

    Only what may be shown to anybody. When there is no room for all, the newest items stay and the summary
    is cut to what half of the message leaves it.
    """
    items = [item for item in view.active() if item.facets.sensitivity == "normal"]
    items.sort(key=lambda item: -item.updated_at)
    head = [f"**Memory of {name}** ({user_id})", f"updated {iso_ms(view.updated_at)[:16]}Z", ""]
    head.append("**Durable memory (active)**")
    lines = [f"- [{item.kind}] {item.text} (updated {date_of(item.updated_at)})" for item in items]
    tail: list[str] = []
    if rolling.summary:
        tail = ["", f"**Conversation memory** ({place}, updated {iso_ms(rolling.updated_at)[:16]}Z)"]
        used = _size([*head, *tail]) + min(_size(lines), limit // 2)
        tail.append(clip(rolling.summary, max(0, limit - used - 60)))
    room = limit - _size(head) - _size(tail) - utf16_length(MORE.format(count=len(lines))) - 1
    kept = 0
    while kept < len(lines) and (room := room - utf16_length(lines[kept]) - 1) >= 0:
        kept += 1
    more = [MORE.format(count=len(lines) - kept)] if kept < len(lines) else []
    return "\n".join([*head, *(lines[:kept] if lines else ["nothing yet"]), *tail, *more])


def _size(lines: Sequence[str]) -> int:
    return sum(utf16_length(line) + 1 for line in lines)
