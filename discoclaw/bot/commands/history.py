"""What people do with their history: look at what changed, go back in it, and keep personas.

The same history as `show.text` has for the terminal, in the words that people know and with times that
Discord renders. What is done is in `memory/subjects/verbs`. `in_private` means what it means in `show.text`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from discoclaw.bot.commands.call import Call
from discoclaw.bot.memories import row_of
from discoclaw.bot.questions import question
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Ref
from discoclaw.core.history import MAIN, Branches, History
from discoclaw.core.item import by_newest
from discoclaw.core.merge import Clash, ItemChange, MergeResult, diff
from discoclaw.core.pending import is_proposal, settled_as
from discoclaw.core.privacy import sensitivity
from discoclaw.core.text import utf16_length
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import EMPTY, View
from discoclaw.core.yours import yours
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import held, view_at
from discoclaw.memory.subjects.store import Memory
from discoclaw.show import graph
from discoclaw.show import text as shown
from discoclaw.show.answer import GREY, Answer, Button, File, Reply, Row, Turn, message
from discoclaw.show.events import linked, verb
from discoclaw.show.graph import digits
from discoclaw.show.markup import ago, block, name, opening, plain, said, words
from discoclaw.show.text import hidden as hidden_of
from discoclaw.show.words import PEOPLE, PRIVATE, acts, count, line, short, word
from discoclaw.store.files import read_in_thread

WHOLE_AS_TEXT = 1900
"""The longest diagram, in UTF-16 units, that stands in the message itself; a longer one is a file."""
NOTHING = "I remember nothing yet."
Change = TypeVar("Change", ItemChange, Clash)

_BY = {
    "command": "by you, with a command",
    "button": "by you, with a button",
    "menu": "by you, from a message's menu",
    "cli": "by whoever runs me",
    "extraction": "learned from what was said",
    "hygiene": "by itself, when its time was over",
    "file": "by hand, in the file",
    "import": "imported",
    "hatching": "in our interview",
    "repair": "while your history was repaired",
    "deletion": "by itself",
    "edit": "by itself",
}
_ACTS = {"merge": "merges", "cherry-pick": "copies", "undo": "takes back", "restore": "goes back to"}
_DID = {"merge": "merged", "cherry-pick": "copied", "undo": "took back", "restore": "went back"}
_QUOTED = ("learned", "remembered", "corrected", "restored")
"""Acts whose words may be said again."""
_SETTLED = {
    "keep_old": "you kept the first, not",
    "use_new": "you chose",
    "both_valid": "you kept both, also",
}

_CHANGED = {
    "added": "new",
    "changed": "changed",
    "deprecated": "forgotten",
    "restored": "restored",
    "removed": "removed",
}
_ANSWERED = {
    "kept": "you agreed to",
    "dropped": "you declined",
    "lapsed": "got no answer about",
    "undone": "no longer asks about",
}


# ---------------------------------------------------------------------- looking


async def log(call: Call, oneline: bool, limit: int, persona: str | None) -> Answer:
    history = await call.history()
    branch = call.persona(history.branches, persona) if history.records else None
    records, earlier = shown.newest(history, branch, limit)
    rows = await asyncio.to_thread(_changes, call, history, records, branch, oneline=oneline, limit=limit)
    changes = sum(isinstance(one, Commit) for one in records)
    return Answer(
        "What changed in your memory",
        rows or [Row(NOTHING)],
        small=[count(changes, "change")] if rows else [],
        foot=[f"and {count(earlier, 'earlier change')}"] if earlier else [],
        turn=Turn(call.user_id, "history log", (oneline, limit, persona)),
        page=call.page,
        colour=GREY,
    )


def _changes(
    call: Call,
    history: History,
    records: Sequence[Commit | Ref],
    branch: str | None,
    *,
    oneline: bool,
    limit: int,
) -> list[Row]:
    """A row for each change of a persona, newest first.

    On a card, a change has a button that takes it back; as a text, its id and those of its memories.
    """
    secrets = shown.Secrets(history, in_private=call.in_private, branch=branch)
    done_by = teller(history, in_private=call.in_private, branch=branch)
    size, several = digits(history.commits), len(history.branches.all) > 1
    chain = {one.id for one in history.chain(history.branch(branch).head)} if branch is not None else set()
    rows = []
    for record in records:
        if isinstance(record, Ref):
            if not oneline:
                what = turn(record, in_private=call.in_private)
                rows.append(Row(_capital(what), when(record), line=f"- {when(record)} {what}"))
            continue
        did = plain(done_by(record))
        about = [*made_by(record), *([f"persona {name(record.branch)}"] if several else [])]
        # Where the small print says how it came about, a title says no more, unless it names another change.
        titled = oneline or not record.events or bool(acts(record)) or not made_by(record)
        events = [] if oneline else [told(event, secrets) for event in record.events]
        if oneline:
            persona = f" ({name(record.branch)})" if several else ""
            typed = [f"- `{record.id[:size]}` {when(record)} {did}{persona}"]
        else:
            others = [f"{_ACTS[act]} `{word(other)[:size]}`" for act, other in acts(record)]
            details = ", ".join([*about, *others, f"id `{record.id[:size]}`"])
            typed = [f"- {when(record)} {f'{did}: ' if titled else ''}{details}"]
            typed += [
                f"  - {told(event, secrets, f' {short(secrets.target(event))}')}" for event in record.events
            ]
        control = None
        if record.id in chain and not all(is_proposal(event) for event in record.events):
            known = f"{call.user_id}:{record.id}:{{page}}:{limit}:{branch}"
            control = Button(f"revert:{known}", "Take back")
        text = "\n".join([*([f"**{_capital(did)}**"] if titled else []), *map(_capital, events)])
        rows.append(Row(text, " · ".join([when(record), *about]), control, line="\n".join(typed)))
    return rows


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


async def view(call: Call, at: str | None, persona: str | None) -> Reply:
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
            return "I remembered nothing then."
        taken = await asyncio.to_thread(shown.taken_from, history, branch)
    found = found if call.in_private else taken.view(found)
    items = sorted(found.items.values(), key=lambda item: (not item.active, by_newest(item)))
    rows = [
        replace(row_of(item, call.where), private=not shown.is_open(item, in_private=False, hidden=hidden))
        for item in items
    ]
    for number, one in enumerate(found.conflicts):
        secret = not call.in_private and {one.item_id, one.other_id} & hidden
        asked = PRIVATE if secret else question(found, one, in_private=call.in_private)
        rows.append(Row(asked, title="" if number else "To settle", line=f"- {asked}"))
    active = sum(item.active for item in items)
    gone = [f"{len(items) - active} forgotten"] if active < len(items) else []
    return Answer(
        f"What I remembered at {words(at, 60)}" if at else "What I remember, and what I forgot",
        rows or [Row(NOTHING)],
        small=[count(active, "memory"), *gone] if items else [],
        turn=Turn(call.user_id, "history view", (at, persona)),
        page=call.page,
        colour=GREY,
    )


async def difference(call: Call, start: str | None, end: str | None) -> Answer:
    history = await call.history()
    branch, here = call.persona(history.branches), call.persona_here
    found, hidden = await asyncio.to_thread(_difference, history, branch, here, start, end)
    if not call.in_private:
        found = (await asyncio.to_thread(shown.taken_from, history, None)).changes(found)
    rows = [_difference_row(_told(change), hidden) for change in found]
    return Answer(
        "What differs",
        rows or [Row("There is no difference.")],
        small=[count(len(found), "memory")] if found else [],
        turn=Turn(call.user_id, "history diff", (start, end)),
        page=call.page,
        colour=GREY,
    )


def _difference_row(change: ItemChange, hidden: Collection[str]) -> Row:
    """A memory that differs between two points, and what happened to it."""
    before, item = change.before, change.item
    text, typed, what = opening(item.text), said(item.text), _CHANGED[change.kind]
    if before is not None and before.text != item.text:
        text = f"~~{plain(line(before.text))}~~\n{text}"
        typed = f"{said(before.text)} → {typed}"
    elif before is not None and change.kind == "changed" and (names := shown.fields(before, item)):
        what = f"{what}: {', '.join(names)}"
    open_ = all(shown.is_open(one, in_private=False, hidden=hidden) for one in (before, change.after))
    return Row(text, what, line=f"- {what}: {typed} (id {short(item.id)})", private=not open_)


async def draw(call: Call, form: str) -> Reply:
    history = await call.history()
    if not history.commits:
        raise Refused("there is nothing to draw yet, because I remember nothing about you")
    done = teller(history, in_private=call.in_private)
    history = await asyncio.to_thread(_said_by, history, done)
    number = count(len(history.commits), "change")
    if form == "timeline":
        return block(await asyncio.to_thread(graph.timeline, history, words=PEOPLE))
    if form == "mermaid":
        mermaid = await asyncio.to_thread(graph.mermaid, history)
        text = block(mermaid, "mermaid")
        if utf16_length(text) <= WHOLE_AS_TEXT:
            return text
        file = File("memory.mmd", mermaid.encode())
        return message(f"{number}: the diagram is in `memory.mmd`.", files=[file])
    title = f"Memory of {call.author.display_name}"
    drawn = await asyncio.to_thread(_png, history, title)
    return Answer(
        words(title),
        small=[number],
        files=[File("memory.png", drawn, f"{words(title)}, as a graph of its changes")],
        foot=["`/memory history graph form:mermaid` gives the diagram as text."],
        colour=GREY,
    )


def _said_by(history: History, done: Callable[[Commit], str]) -> History:
    """A history for drawing: each commit's message says what it changed."""
    records = history.records
    return History(replace(one, message=done(one)) if isinstance(one, Commit) else one for one in records)


def _png(history: History, title: str) -> bytes:
    from discoclaw.show.picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(history, title=title)


async def verify(call: Call) -> str:
    assert isinstance(call.memory, Memory)  # the command needs one
    found = await read_in_thread(held, call.memory.disk, call.subject)
    if not found.faults:
        return f"Your history is intact: {count(len(found.commits), 'change')} checked."
    listed = "\n".join(f"- {fault}" for fault in found.faults[:20])
    return f"Your history is damaged. Please tell whoever runs me:\n{block(listed)}"


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
    return brought(done, in_private=call.in_private)


async def revert(call: Call, change: str) -> str:
    return await _go_back(call, verbs.revert, change)


async def restore(call: Call, change: str) -> str:
    return await _go_back(call, verbs.restore, change)


async def _go_back(call: Call, verb: Callable[..., Awaitable[MergeResult]], change: str) -> str:
    branch = call.persona(await call.memory.branches(call.subject))
    done = await verb(call.memory, call.subject, change, call.origin(), branch=branch, **call.metadata)
    return brought(done, in_private=call.in_private)


def brought(done: MergeResult, *, in_private: bool) -> str:
    """The result of an undo, a merge or a copied change, and what is left to decide."""
    read = replace(done, changes=(*map(_told, done.changes),), clashes=(*map(_told, done.clashes),))
    lines = shown.brought_lines(read, in_private=in_private)
    if done.commit is None:
        head = "Nothing to do" + ("." if lines else ": it's all here already.")
    else:
        number = count(len(done.changes), "change") if done.changes else "no memory changed"
        did = "".join(f"{_DID[act]}: " for act, _ in acts(done.commit))
        head = f"Done: {did}{number} (id `{done.commit.id}`)."
    text = "\n".join([head, *([block("\n".join(lines), "diff")] if lines else [])])
    if opened := [short(change.item.id) for change in done.changes if _is_shared(change)]:
        ids = ", ".join(opened[:10]) + (", …" if len(opened) > 10 else "")
        text += f"\nNow I use outside our DMs again: {ids}. `!memory private <id>` keeps one in our DMs."
    events = done.commit.events if done.commit is not None else ()
    if any("settled" not in event.ext["conflict"] for event in events if "conflict" in event.ext):
        text += "\nYou decide which one is right: `!memory settle`."
    return text


def _is_shared(change: ItemChange) -> bool:
    """Whether an item was private before and is not any more."""
    before, after = change.before, change.after
    if before is None or after is None:
        return False
    return before.facets.sensitivity != "normal" == after.facets.sensitivity


def _told(change: Change) -> Change:
    """A change, or a clash, with both items as their person reads them."""
    both = {one.name: getattr(change, one.name) for one in fields(change)}
    return replace(change, **{name: one and replace(one, text=yours(one.text)) for name, one in both.items()})


# ---------------------------------------------------------------------- what happened, in words


def teller(history: History, *, in_private: bool, branch: str | None = None) -> Callable[[Commit], str]:
    """Says what a commit did, without what was taken back since: "learned: you like tea, forgot 1 memory"."""
    secrets = shown.Secrets(history, in_private=in_private, branch=branch)
    taken = shown.taken_from(history, branch)

    def few(what: str, events: Sequence[Event]) -> str:
        first, text = events[0], shown.text_of(events[0])
        if what not in _QUOTED or taken.of_event(first, secrets.target(first), text):
            return f"{what} {count(len(events), 'memory')}"
        words = line(yours(text), 100).rstrip(".") if secrets.open(first) else PRIVATE
        words = f"y{words[1:]}" if words.startswith(("You ", "Your ")) else words
        return f"{what}: {words}" + (f" (+{len(events) - 1} more)" if len(events) > 1 else "")

    def own(commit: Commit) -> str:
        found: dict[str, list[Event]] = {}
        for event in commit.events:
            found.setdefault(verb(event), []).append(event)
        return ", ".join(few(*one) for one in found.items()) or line(commit.message)

    def done(commit: Commit) -> str:
        act, other = next(iter(acts(commit)), ("", ""))
        if act in ("merge", "restore"):
            return _DID[act] + (f": {word(commit.metadata.get('from'))}" if act == "merge" else "")
        of = history.commits.get(other)
        return (f"{_DID[act]}: " if act else "") + own(of or commit)

    return done


def when(record: Commit | Ref) -> str:
    """When it happened."""
    return ago(ms_of_iso(record.timestamp))


def made_by(commit: Commit) -> list[str]:
    """The maker of a change, in words; none if unknown."""
    by = commit.metadata.get("by")
    if not isinstance(by, str):
        return []
    return [plain("by me, while we talked" if by.startswith("memory_") else _BY.get(by, f"by {word(by)}"))]


def turn(ref: Ref, *, in_private: bool) -> str:
    """A line about what happened to a persona."""
    persona = f"persona {name(ref.branch)}"
    if ref.action == "create":
        secret = ref.metadata.get("private") is True and not in_private
        about = PRIVATE if secret else said(ref.persona)
        return f"{persona} created" + (f": {about}" if ref.persona else "")
    if ref.action == "switch":
        return f"switched to {persona}"
    if ref.action == "delete":
        return f"{persona} deleted"
    return "changes of another copy came in" if ref.action == "union" else "history repaired"


def told(event: Event, secrets: shown.Secrets, target: str = "") -> str:
    """An event in words: `remembered: “I like tea”`; with the id of its `target` where that is wanted."""
    marks = "" if event.sensitivity == "normal" else f" ({event.sensitivity})"
    words = secrets.instead(event) or _words(event, secrets)
    did = verb(event)
    if is_proposal(event):
        did = _ANSWERED.get(settled_as(event), "asked whether to remember")
    return f"{did}{target}{marks}: {words}"


def _words(event: Event, secrets: shown.Secrets) -> str:
    link, noted = event.ext.get("link"), event.ext.get("conflict")
    if link is not None:
        other = secrets.text_of_item(str(link.get("to", "")))
        return linked(link, said(yours(other)) if other else "")
    if noted is not None:
        text = noted.get("text")
        other = said(yours(text)) if isinstance(text, str) and text else "that it no longer holds"
        how = _SETTLED.get(str(noted.get("settled")), "you decided about") if "settled" in noted else "or"
        return f"{how} {other}"
    return said(yours(shown.text_of(event)))


# ----------------------------------------------------------------------
# Personas: separate memories of one person, and how changes get from one to another.

ONLY_IN_DMS = "\n(I show and use its description in our DMs only. Its name is shown everywhere.)"
ALWAYS = "This channel always uses the persona {name}."


async def overview(call: Call) -> Answer:
    branches = await call.memory.branches(call.subject)
    counts = {one: len((await call.memory.view(call.subject, one)).active()) for one in branches.all}
    rows = []
    for one, branch in branches.all.items():
        shown = PRIVATE if branch.private and not call.in_private else said(branch.persona)
        number, about = count(counts[one], "memory"), shown if branch.persona else ""
        current = one == branches.current
        rows.append(
            Row(
                f"**{name(one)}**" + (f"\n{about}" if about else ""),
                f"{number} · current" if current else number,
                None if current else Button(f"be:{call.user_id}:{{page}}:{one}", "Switch"),
                line=f"- **{name(one)}**{' (current)' if current else ''}: {number}{about and f' – {about}'}",
            )
        )
    return Answer(
        "Your personas",
        rows,
        foot=[ALWAYS.format(name=name(call.persona_here))] if call.persona_here is not None else [],
        turn=Turn(call.user_id, "persona list"),
        page=call.page,
    )


async def switch(call: Call, name: str) -> str:
    before = await call.memory.branches(call.subject)
    after = await verbs.switch(call.memory, call.subject, name, said_at=call.asked_at, **call.metadata)
    if after.current == before.current:
        return f"`{after.current}` is your persona already.{_here(call)}"
    return f"Your persona is now `{after.current}`, everywhere.{_about(call, after)}{_here(call)}"


async def create(call: Call, name: str, description: str | None) -> str:
    before = await call.memory.branches(call.subject)
    here = call.persona_here
    about = call.client.redactor.clean(description or "")
    secret = bool(about) and _is_private(call, about)
    after = await verbs.create_branch(
        call.memory,
        call.subject,
        name,
        about,
        start=here if here is None or here in before.all else MAIN,
        **call.metadata,
        **({"private": True} if secret else {}),
    )
    (made,) = after.all.keys() - before.all.keys()
    return (
        f"Created the persona `{made}`. It knows what `{here or before.current}` knows now. "
        f"To switch to it, use `!memory persona switch {made}`.{ONLY_IN_DMS if secret else ''}"
    )


async def delete(call: Call, name: str) -> str:
    gone = (await call.memory.branches(call.subject)).named(name).name
    await verbs.delete_branch(call.memory, call.subject, gone, **call.metadata)
    return (
        f"Deleted the persona `{gone}`. Its changes stay in your history; "
        "`!memory persona copy <change>` brings one back."
    )


async def merge(call: Call, name: str) -> str:
    into = call.persona(await call.memory.branches(call.subject))
    done = await verbs.merge(call.memory, call.subject, name, call.origin(), branch=into, **call.metadata)
    return brought(done, in_private=call.in_private)


async def copy(call: Call, change: str) -> str:
    onto = call.persona(await call.memory.branches(call.subject))
    done = await verbs.cherry_pick(
        call.memory, call.subject, change, call.origin(), branch=onto, **call.metadata
    )
    return brought(done, in_private=call.in_private)


async def autoswitch(call: Call, state: str) -> str:
    await call.context.choices.choose(call.user_id, auto_switch=state == "on")
    if state == "on":
        return "From now on I switch your persona by myself when we talk about what another one is for."
    return "From now on I ask before I switch your persona."


def _here(call: Call) -> str:
    """The answer where the place decides about the persona."""
    here = call.persona_here
    return f"\n{ALWAYS.format(name=f'`{here}`')}" if here is not None else ""


def _is_private(call: Call, about: str) -> bool:
    """Whether a description is for our DMs only, by the rule that holds for what is remembered."""
    return (
        sensitivity(
            "fact",
            about,
            inferred=False,
            learned_privately=call.place.private,
            marked=call.marked(about),
            rule=call.context.dm_privacy,
        )
        != "normal"
    )


def _about(call: Call, branches: Branches) -> str:
    now = branches.all[branches.current]
    visible = now.persona and (call.in_private or not now.private)
    return f" It is about: {words(now.persona)}" if visible else ""
