"""What people do with a history: look at what changed, draw and check it, and go back in it.

In Discord it is told in the words that people know and with times that Discord renders; in a terminal in
git's words (`show.text`), and as JSON. What is done is in `memory/subjects/verbs`. `in_private` means what it
means in `show.text`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, fields, replace
from typing import Any, TypeVar

from discoclaw.commands.caller import DONE_ALREADY, GONE, Caller
from discoclaw.commands.memories import item_json, question, row_of
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Ref
from discoclaw.core.history import History
from discoclaw.core.item import Item, Source, by_newest
from discoclaw.core.merge import Clash, ItemChange, MergeResult, diff
from discoclaw.core.pending import is_proposal, settled_as
from discoclaw.core.reminder import after, did_in
from discoclaw.core.text import utf16_length
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import EMPTY, Fold, View
from discoclaw.core.yours import yours
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.inspect import view_at
from discoclaw.show import graph as graphs
from discoclaw.show import text as shown
from discoclaw.show.answer import GREY, Answer, Button, File, Reply, Row, Turn, message
from discoclaw.show.graph import digits
from discoclaw.show.markup import NOTE, ago, block, name, opening, plain, said, words
from discoclaw.show.purge import TakenFrom, taken_from
from discoclaw.show.text import REMINDED, linked, verb
from discoclaw.show.text import hidden as hidden_of
from discoclaw.show.words import GIT, PEOPLE, PRIVATE, Times, acts, count, line, short, word

NOTHING = "I remember nothing yet."
WHOLE_AS_TEXT = 1900
"""The longest diagram, in UTF-16 units, that stands in the message itself; a longer one is a file."""
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
    "remind": "by me, while we talked",
    "reminders": "by itself, when it was due",
    "repair": "while your history was repaired",
    "deletion": "by itself",
    "edit": "by itself",
}
_ACTS = {"merge": "merges", "cherry-pick": "copies", "undo": "takes back", "restore": "goes back to"}
_DID = {"merge": "merged", "cherry-pick": "copied", "undo": "took back", "restore": "went back"}
_QUOTED = ("learned", "remembered", "corrected", "restored", "restored a reminder", *REMINDED.values())
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


async def log(caller: Caller, oneline: bool, limit: int | None, persona: str | None) -> Answer:
    history = await caller.history()
    branch = caller.looks_at(history, persona)
    if caller.terminal:
        made = history.chain(history.branch(branch).head) if branch is not None else history.commits.values()
        told = shown.log(history, branch=branch, oneline=oneline, limit=limit, times=caller.times)
        return Answer(typed=told, data=[commit.to_json() for commit in [*made][::-1][:limit]])
    records, earlier = shown.newest(history, branch, limit)
    rows = await asyncio.to_thread(_changes, caller, history, records, branch, oneline=oneline, limit=limit)
    changes = sum(isinstance(one, Commit) for one in records)
    return Answer(
        "What changed in your memory",
        rows or [Row(NOTHING)],
        small=[count(changes, "change")] if rows else [],
        foot=[f"and {count(earlier, 'earlier change')}"] if earlier else [],
        turn=Turn(caller.user_id, "history log", (oneline, limit, persona)),
        page=caller.page,
        colour=GREY,
    )


def _changes(
    caller: Caller,
    history: History,
    records: Sequence[Commit | Ref],
    branch: str | None,
    *,
    oneline: bool,
    limit: int | None,
) -> list[Row]:
    """A row for each change of a persona, newest first.

    On a card, a change has a button that takes it back; as a text, its id and those of its memories.
    """
    secrets = shown.Secrets(history, in_private=caller.in_private, branch=branch)
    done_by = teller(history, in_private=caller.in_private, branch=branch)
    size, several = digits(history.commits), len(history.branches.all) > 1
    chain = {one.id for one in history.chain(history.branch(branch).head)} if branch is not None else set()
    rows = []
    for record in records:
        if isinstance(record, Ref):
            if not oneline:
                what = turn(record, in_private=caller.in_private)
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
            known = f"{caller.user_id}:{record.id}:{{page}}:{limit}:{branch}"
            control = Button(f"revert:{known}", "Take back")
        text = "\n".join([*([f"**{_capital(did)}**"] if titled else []), *map(_capital, events)])
        rows.append(Row(text, " · ".join([when(record), *about]), control, line="\n".join(typed)))
    return rows


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


async def view(caller: Caller, at: str | None, persona: str | None) -> Answer:
    hidden: frozenset[str] = frozenset()
    if at is None and persona is None:
        found = await caller.view(caller.persona_here)
        taken = TakenFrom([found])
    else:
        history = await caller.history()
        # Without a persona, a date shows the one that was current then: today's may be newer than the date.
        branch = caller.looks_at(history, persona) if persona or caller.persona_here else None
        found, hidden = await asyncio.to_thread(_then, caller, history, at, branch)
        taken = await asyncio.to_thread(taken_from, history, branch)
    if at is not None and not found.items:
        then = f"Nothing was remembered about {caller.subject} then."
        return Answer(rows=[Row("I remembered nothing then.")], typed=then, data=_view_json(caller, found))
    if caller.terminal:
        return Answer(typed=shown.view(found, times=caller.times), data=_view_json(caller, found))
    found = found if caller.in_private else taken.view(found)
    items = sorted(found.items.values(), key=lambda item: (not item.active, by_newest(item)))
    rows = [
        replace(row_of(item, caller.where), private=not shown.is_open(item, in_private=False, hidden=hidden))
        for item in items
    ]
    for number, one in enumerate(found.conflicts):
        secret = not caller.in_private and {one.item_id, one.other_id} & hidden
        asked = PRIVATE if secret else question(found, one, in_private=caller.in_private)
        rows.append(Row(asked, title="" if number else "To settle", line=f"- {asked}"))
    active = sum(item.active for item in items)
    gone = [f"{len(items) - active} forgotten"] if active < len(items) else []
    return Answer(
        f"What I remembered at {words(at, 60)}" if at else "What I remember, and what I forgot",
        rows or [Row(NOTHING)],
        small=[count(active, "memory"), *gone] if items else [],
        turn=Turn(caller.user_id, "history view", (at, persona)),
        page=caller.page,
        colour=GREY,
    )


def _view_json(caller: Caller, view: View) -> dict[str, Any]:
    return {
        "subject": caller.subject,
        "commit": view.head,
        "items": [item_json(item) for item in view.items.values()],
        "conflicts": [asdict(conflict) for conflict in view.conflicts],
    }


async def difference(caller: Caller, start: str | None, end: str | None) -> Answer:
    history = await caller.history()
    found, hidden = await asyncio.to_thread(_difference, caller, history, start, end)
    if caller.terminal:
        return Answer(typed=shown.changes(found), data=[change_json(each) for each in found])
    if not caller.in_private:
        found = (await asyncio.to_thread(taken_from, history, None)).changes(found)
    rows = [_difference_row(_told(change), hidden) for change in found]
    return Answer(
        "What differs",
        rows or [Row("There is no difference.")],
        small=[count(len(found), "memory")] if found else [],
        turn=Turn(caller.user_id, "history diff", (start, end)),
        page=caller.page,
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


def _then(
    caller: Caller, history: History, at: str | None, branch: str | None
) -> tuple[View, frozenset[str]]:
    """The view at a point, or of a persona now, and the items that are shown in private only."""
    if at is None:
        return history.view(history.branch(branch or history.branches.current).head), hidden_of(history)
    return view_at(history, at, branch=branch, to_utc=caller.to_utc), hidden_of(history)


def _difference(
    caller: Caller, history: History, start: str | None, end: str | None
) -> tuple[list[ItemChange], frozenset[str]]:
    """The differences between two points of a persona; between one and now; or by the last change.

    Where the persona isn't decided yet, a date means the one that was current then.
    """
    here, to_utc = caller.persona_here, caller.to_utc
    head = history.branch(caller.persona(history.branches)).head
    if start is not None:
        old = view_at(history, start, branch=here, to_utc=to_utc)
    else:
        chain = history.chain(head)
        old = history.view(chain[-2].id) if len(chain) > 1 else EMPTY
    new = view_at(history, end, branch=here, to_utc=to_utc) if end is not None else history.view(head)
    return diff(old, new), hidden_of(history)


async def stats(caller: Caller) -> Answer:
    history = await caller.history()
    if caller.terminal:
        told = {"subject": caller.subject} | shown.stats_json(history)
        return Answer(typed=shown.stats(history, times=caller.times), data=told)
    found = await asyncio.to_thread(shown.figures, history, ago, people=True, in_private=caller.in_private)
    named = [(title.capitalize(), text) for title, text in found]
    rows = [Row(f"**{title}**\n{text}", line=f"**{title}**: {text}") for title, text in named]
    return Answer(
        "Your memory in numbers",
        rows or [Row(NOTHING)],
        foot=caller.troubles(),
        turn=Turn(caller.user_id, "data stats"),
        page=caller.page,
        most=10,
        colour=GREY,
    )


# ---------------------------------------------------------------------- where a memory comes from


async def why(caller: Caller, memory: str | None) -> Reply:
    wanted = (memory or "").strip()
    if not wanted and not caller.terminal:
        return await caller.answer_explained()
    history = await caller.history()
    branch = caller.looks_at(history, None)
    if caller.terminal:
        item = await _once_known(caller, history, branch, wanted)
    else:
        now = history.view(history.branch(branch).head) if branch is not None else EMPTY
        seen = now if caller.in_private else TakenFrom([now]).view(now)
        item = await caller.the_one(seen.items.values(), wanted, "why", gone=True)
    secrets, touched = await asyncio.to_thread(_touching, caller, history, item, branch)
    if caller.terminal:
        # A URL as the link would need the id of the server, which a ledger does not contain.
        typed = shown.why(history, item, link=str, branch=branch, times=caller.times)
        events = [
            {"commit": one.id, "branch": one.branch, "message": one.message, "event": event.to_json()}
            for one, event in touched
        ]
        return Answer(typed=typed, data={"item": item_json(item), "events": events})
    rows = []
    for commit, event in touched:
        because = ""
        if event.evidence and not _is_place(event.evidence):
            because = f"because: {secrets.instead_of_evidence(event) or said(event.evidence)}"
        about = filter(None, (when(commit), _origin(caller, commit, event), because))
        rows.append(Row(told(event, secrets), " · ".join(about)))
    return Answer(
        "Where this comes from",
        [row_of(item), *(rows or [Row("Your history doesn't say where it came from.")])],
        turn=Turn(caller.user_id, "why", (item.id,)),
        page=caller.page,
        colour=GREY,
    )


def _touching(
    caller: Caller, history: History, item: Item, branch: str | None
) -> tuple[shown.Secrets, list[tuple[Commit, Event]]]:
    """Every event about an item, oldest first, with its commit. Raises Refused if there is no such branch."""
    secrets = shown.Secrets(history, in_private=caller.in_private, branch=branch)
    made = ((one, event) for one in shown.commits_of(history, branch) for event in one.events)
    return secrets, [(one, event) for one, event in made if secrets.target(event) == item.id]


async def _once_known(caller: Caller, history: History, branch: str | None, wanted: str) -> Item:
    """The item that is meant, on one branch or on all; a removed one only if no other is meant.

    The ids and texts of removed ones must not make those of present ones ambiguous.
    """
    there: dict[str, Item] = {}
    for other in history.branches.all.values() if branch is None else ():
        there |= history.view(other.head).items
    there |= history.view(history.branch(branch or history.branches.current).head).items
    try:
        return await caller.the_one(there.values(), wanted, "why", gone=True)
    except Refused:
        working, gone = Fold(), dict[str, Item]()  # the removed ones, as they were before
        for commit in shown.commits_of(history, branch):
            for event in commit.events:
                before = dict(working.items) if event.verb == "forget" else {}
                working.apply(event)
                gone |= {key: one for key, one in before.items() if key not in working.items}
        if not gone:
            raise
        return await caller.the_one((gone | there).values(), wanted, "why", gone=True)


def _origin(caller: Caller, commit: Commit, event: Event) -> str:
    kind, this = event.source.partition(":")[0], "this message"
    stated = event.ext.get("facets", {}).get("author") == "stated"
    who = "you said so" if stated else "I concluded it"
    if commit.metadata.get("by") == "menu":
        who = "you chose it"
    if kind == "discord":
        return f"{who}, in {caller.where(Source.from_text(event.source), this)}"
    if kind != "manual":
        return f"{who}, {word(event.source)}"
    at, there = commit.metadata.get("at"), ""
    if isinstance(at, str) and _is_place(at):
        there = f", in {caller.where(Source.from_text(f'discord:{at}'), this)}"
    return f"you told me directly{there}" if stated else f"set directly{there}"


def _is_place(text: str) -> bool:
    channel, _, message = text.partition("/")
    return channel.isdigit() and message.isdigit()


# ---------------------------------------------------------------------- drawing it, checking it


async def graph(caller: Caller, form: str) -> Reply:
    """A history as a `picture`, as a `timeline` in text, or as Mermaid's gitGraph."""
    history = await caller.history()
    if caller.terminal:
        made = await asyncio.to_thread(_drawn, history, form, caller.subject, caller.times)
        text = form != "picture"  # ends with exactly one newline, in a file as on the terminal
        file = File("", made.rstrip(b"\n") + b"\n" if text else made)
        return Answer(typed=f"Wrote the history of {caller.subject} to {{path}}.", files=[file])
    if not history.commits:
        raise Refused("there is nothing to draw yet, because I remember nothing about you")
    title, number = f"Memory of {caller.name}", count(len(history.commits), "change")
    done_by = teller(history, in_private=caller.in_private)
    made = await asyncio.to_thread(_drawn, history, form, title, caller.times, done_by)
    if form == "timeline":
        return block(made.decode())
    if form == "mermaid":
        text_ = block(made.decode(), "mermaid")
        if utf16_length(text_) <= WHOLE_AS_TEXT:
            return text_
        return message(f"{number}: the diagram is in `memory.mmd`.", files=[File("memory.mmd", made)])
    return Answer(
        words(title),
        small=[number],
        files=[File("memory.png", made, f"{words(title)}, as a graph of its changes")],
        foot=["`/memory history graph form:mermaid` gives the diagram as text."],
        colour=GREY,
    )


def _drawn(
    history: History, form: str, title: str, times: Times, done_by: Callable[[Commit], str] | None = None
) -> bytes:
    """A drawing. With `done_by`, each commit's message says what it changed, and the words are people's."""
    if done_by is not None:
        records = history.records
        history = History(
            replace(one, message=done_by(one)) if isinstance(one, Commit) else one for one in records
        )
    if form == "timeline":
        vocabulary = PEOPLE if done_by is not None else GIT
        return graphs.timeline(history, words=vocabulary, times=times).encode()
    if form == "mermaid":
        return graphs.mermaid(history).encode()
    from discoclaw.show.picture import png  # Pillow takes 11 MB, and a second on a slow disk

    return png(history, title=title)


async def verify(caller: Caller) -> Answer:
    """Whether histories are complete and unchanged; on the command line, also what was repaired."""
    checked = await caller.checked()
    faulty = sum(bool(one.faults) for one, _ in checked)
    number = sum(len(one.commits) for one, _ in checked)
    if not caller.terminal:
        if not faulty:
            return message(f"Your history is intact: {count(number, 'change')} checked.")
        listed = "\n".join(f"- {fault}" for one, _ in checked for fault in one.faults[:20])
        return message(f"Your history is damaged. Please tell whoever runs me:\n{block(listed)}")
    lines, data = [], []
    for one, repaired in checked:
        lines += [f"{one.subject}: {step}" for step in repaired]
        lines += [f"{one.subject}: {line(fault)}" for fault in (*one.faults, *one.notes)]
        data.append(
            {
                "subject": one.subject,
                "commits": len(one.commits),
                "faults": list(one.faults),
                "notes": list(one.notes),
                "damage": [{"line": damage.line, "reason": damage.reason} for damage in one.damage],
                "torn_bytes": one.torn,
                "orphans": one.history.orphans(),
                "accepted_as_lost": sorted(one.history.accepted),
                "repaired": list(repaired),
            }
        )
    found = f"found problems in {faulty}" if faulty else "no problems"
    lines.append(f"Checked {count(len(checked), 'memory')} with {count(number, 'commit')}: {found}.")
    return Answer(typed="\n".join(lines), data=data, failed=bool(faulty))


# ---------------------------------------------------------------------- going back


async def undo(caller: Caller) -> Reply:
    branch = caller.persona(await caller.branches())
    done = await verbs.undo(caller.memory, caller.subject, caller.origin(), branch=branch, **caller.metadata)
    return brought(caller, done)


async def revert(caller: Caller, change: str) -> Reply:
    if not caller.confirmed:
        return await _bring(caller, verbs.revert, change)
    # By a button below what was changed, which is told what came of it in a line.
    history, branch = await caller.history(), caller.persona_here
    if (commit := history.commits.get(change)) is None or branch not in history.branches.all:
        raise Refused(GONE)
    origin, how = caller.origin(), caller.metadata
    done = await verbs.revert(caller.memory, caller.subject, change, origin, branch=branch, **how)
    if done.commit is not None:
        return f"{NOTE}taken back{'; what has changed since stays' if done.clashes else ''}"
    if any(did_in(event) for event in commit.events):
        raise Refused("that reminder has come or was changed since, so there is nothing to take back")
    raise Refused("it has changed since, so it stays" if done.clashes else DONE_ALREADY)


async def restore(caller: Caller, change: str) -> Reply:
    return await _bring(caller, verbs.restore, change)


async def merge(caller: Caller, name: str) -> Reply:
    return await _bring(caller, verbs.merge, name)


async def copy(caller: Caller, change: str) -> Reply:
    return await _bring(caller, verbs.cherry_pick, change)


async def _bring(caller: Caller, verb: Callable[..., Awaitable[MergeResult]], point: str) -> Reply:
    branch = caller.persona(await caller.branches())
    origin, how = caller.origin(), caller.metadata
    return brought(caller, await verb(caller.memory, caller.subject, point, origin, branch=branch, **how))


def brought(caller: Caller, done: MergeResult) -> Reply:
    """The result of an undo, a merge or a copied change, and what is left to decide."""
    events = done.commit.events if done.commit is not None else ()
    asks = any("settled" not in event.ext["conflict"] for event in events if "conflict" in event.ext)
    if caller.terminal:
        then = f"List the open questions with `discoclaw memory settle {caller.subject}`."
        return Answer(typed=shown.brought(done), data=_brought_json(done), foot=[then] if asks else [])
    read = replace(done, changes=(*map(_told, done.changes),), clashes=(*map(_told, done.clashes),))
    lines = shown.brought_lines(read, in_private=caller.in_private)
    reminded = [event for event in events if did_in(event) is not None]
    for event in reminded:
        words_ = line(event.object) if caller.in_private or event.sensitivity == "normal" else PRIVATE
        lines.append(f"{'-' if after(event) is None else '+'} reminder: {words_}")
    if done.commit is None:
        head = "Nothing to do" + ("." if lines else ": it's all here already.")
    elif reminded and not done.changes:
        head = f"Done: took back: {count(len(reminded), 'reminder')} (id `{done.commit.id}`)."
    else:
        number = count(len(done.changes), "change") if done.changes else "no memory changed"
        did = "".join(f"{_DID[act]}: " for act, _ in acts(done.commit))
        head = f"Done: {did}{number} (id `{done.commit.id}`)."
    text = "\n".join([head, *([block("\n".join(lines), "diff")] if lines else [])])
    if opened := [short(change.item.id) for change in done.changes if _is_shared(change)]:
        ids = ", ".join(opened[:10]) + (", …" if len(opened) > 10 else "")
        text += f"\nNow I use outside our DMs again: {ids}. `!memory private <id>` keeps one in our DMs."
    if asks:
        text += "\nYou decide which one is right: `!memory settle`."
    return text


def _brought_json(done: MergeResult) -> dict[str, Any]:
    commit = done.commit
    sides = [{"ours": clash.ours, "theirs": clash.theirs} for clash in done.clashes]
    return {
        "commit": commit.id if commit is not None else None,
        "branch": commit.branch if commit is not None else None,
        "message": commit.message if commit is not None else None,
        "changes": [change_json(one) for one in done.changes],
        "clashes": [{side: item and item_json(item) for side, item in one.items()} for one in sides],
    }


def change_json(change: ItemChange) -> dict[str, Any]:
    """One change of an item, as JSON."""
    return {
        "kind": change.kind,
        "id": change.item.id,
        "before": change.before and item_json(change.before),
        "after": change.after and item_json(change.after),
    }


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
    taken = taken_from(history, branch)

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
