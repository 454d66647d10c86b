"""Texts about a person's history: what changed, what they said then, and where a memory comes from.

The same history as `show.text` has for the terminal, as lists that a phone can show, in the words that people
know and with times that Discord renders. `in_private` means what it means there.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields, replace
from typing import TypeVar

from discoclaw.bot.links import source_of_event
from discoclaw.bot.texts.markup import ago, block, name, opening, plain, said
from discoclaw.bot.texts.memory import asked, line_of
from discoclaw.core.event import Commit, Event, Ref
from discoclaw.core.history import History
from discoclaw.core.item import Item, Source, by_newest
from discoclaw.core.merge import Clash, ItemChange, MergeResult
from discoclaw.core.pending import is_proposal, settled_as
from discoclaw.core.times import ms_of_iso
from discoclaw.core.view import View
from discoclaw.core.yours import yours
from discoclaw.show import text as shown
from discoclaw.show.events import linked, verb
from discoclaw.show.graph import digits
from discoclaw.show.words import PRIVATE, acts, count, line, short, word

NOTHING = "I remember nothing yet."
SAME = "There is no difference."
AS_TEXT = "`/memory history graph form:mermaid` gives the diagram as text."
NO_REASON = "Your history doesn't say where it came from."
NOTHING_THEN = "I remembered nothing then."
Change = TypeVar("Change", ItemChange, Clash)
Link = Callable[[Source], str]
"""The address of a message, or what stands instead of one."""

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


# ---------------------------------------------------------------------- log


def log(history: History, *, branch: str | None, oneline: bool, limit: int | None, in_private: bool) -> str:
    """The changes of a persona, newest first; `limit` is the most changes shown."""
    records, earlier = shown.newest(history, branch, limit)
    secrets = shown.Secrets(history, in_private=in_private, branch=branch)
    done = teller(history, in_private=in_private, branch=branch)
    size, several = digits(history.commits), len(history.branches.all) > 1
    lines: list[str] = []
    for record in records:
        if isinstance(record, Ref):
            lines += [] if oneline else [f"- {when(record)} {turn(record, in_private=in_private)}"]
        elif oneline:
            persona = f" ({name(record.branch)})" if several else ""
            lines.append(f"- `{record.id[:size]}` {when(record)} {plain(done(record))}{persona}")
        else:
            about = [*made_by(record), *([f"persona {name(record.branch)}"] if several else [])]
            lines += _change(record, size, about, secrets, done)
    if earlier:
        lines.append(f"(and {count(earlier, 'earlier change')})")
    return "\n".join(lines) or NOTHING


def _change(
    commit: Commit, size: int, about: Sequence[str], secrets: shown.Secrets, done: Callable[[Commit], str]
) -> Iterator[str]:
    others = [f"{_ACTS[act]} `{word(other)[:size]}`" for act, other in acts(commit)]
    details = ", ".join([*about, *others, f"id `{commit.id[:size]}`"])
    title = f"{plain(done(commit))}: " if others or not (about and commit.events) else ""
    yield f"- {when(commit)} {title}{details}"
    yield from (f"  - {_event(event, secrets)}" for event in commit.events)


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


def _event(event: Event, secrets: shown.Secrets) -> str:
    return told(event, secrets, f" {short(secrets.target(event))}")


def told(event: Event, secrets: shown.Secrets, target: str = "") -> str:
    """An event in words: `remembered: “I like tea”`; with the id of its `target` where that is wanted."""
    marks = "" if event.sensitivity == "normal" else f" ({event.sensitivity})"
    words = secrets.instead(event) or _words(event, secrets)
    return f"{_verb(event)}{target}{marks}: {words}"


def _verb(event: Event) -> str:
    if is_proposal(event):
        return _ANSWERED.get(settled_as(event), "asked whether to remember")
    return verb(event)


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


# ---------------------------------------------------------------------- items, differences


def view(view: View, *, in_private: bool, hidden: Collection[str] = ()) -> str:
    """The memories at a point, newest first, then the forgotten ones, then what is to be settled.

    `hidden` are ids of items that became private later.
    """
    items = sorted(view.items.values(), key=lambda item: (not item.active, by_newest(item)))
    visible = [item for item in items if shown.is_open(item, in_private=in_private, hidden=hidden)]
    lines = [line_of(item) for item in visible]
    if left_out := len(items) - len(visible):
        lines.append(f"({count(left_out, 'private memory')}, not shown here)")
    if view.conflicts:
        lines += ["", "**To settle**"]
    for conflict in view.conflicts:
        secret = not in_private and {conflict.item_id, conflict.other_id} & set(hidden)
        lines.append(
            f"- {PRIVATE if secret else plain(shown.conflict(*asked(view, conflict), in_private=in_private))}"
        )
    return "\n".join(lines) or NOTHING


def _told(change: Change) -> Change:
    """A change, or a clash, with both items as their person reads them."""
    both = {one.name: getattr(change, one.name) for one in fields(change)}
    return replace(change, **{name: one and replace(one, text=yours(one.text)) for name, one in both.items()})


def changed(change: ItemChange) -> tuple[str, str]:
    """A difference for the person's eyes only: what it says, and what happened to it."""
    change = _told(change)
    before, item = change.before, change.item
    text = opening(item.text)
    if before is not None and before.text != item.text:
        text = f"~~{plain(line(before.text))}~~\n{text}"
        return text, "changed" if change.kind == "changed" else _CHANGED[change.kind]
    names = ", ".join(shown.fields(before, item)) if before is not None and change.kind == "changed" else ""
    return text, f"{_CHANGED[change.kind]}: {names}" if names else _CHANGED[change.kind]


def changes(found: Sequence[ItemChange], *, in_private: bool, hidden: Collection[str]) -> str:
    """A difference: `+` came, `-` went, `~` says something else now."""
    if not found:
        return SAME
    return block(shown.changes([*map(_told, found)], in_private=in_private, hidden=hidden), "diff")


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


def intact(changes: int) -> str:
    return f"Your history is intact: {count(changes, 'change')} checked."


def damaged(faults: Sequence[str]) -> str:
    listed = "\n".join(f"- {fault}" for fault in faults[:20])
    return f"Your history is damaged. Please tell whoever runs me:\n{block(listed)}"


# ---------------------------------------------------------------------- where a memory comes from


def why(history: History, item: Item, *, link: Link, branch: str | None, in_private: bool) -> str:
    """Every event that touched an item, oldest first, with where it was said.

    `branch` leaves out what other personas did. Raises Refused when there is no such branch.
    """
    secrets = shown.Secrets(history, in_private=in_private, branch=branch)
    item = secrets.item(item)
    visible = shown.is_open(item, in_private=in_private)
    traits = ", ".join(shown.traits(item))
    lines = [f"[{traits}] {plain(line(yours(item.text))) if visible else PRIVATE} (id {short(item.id)})"]
    for commit, event in _events_of(history, item, secrets, branch):
        lines.append(f"- {when(commit)} {_event(event, secrets)} – {_origin(commit, event, link)}")
        if because := _because(event, secrets):
            lines.append(f"  - {because}")
    return "\n".join(lines if len(lines) > 1 else [*lines, NO_REASON])


def reasons(
    history: History, item: Item, *, link: Link, branch: str | None
) -> Iterator[tuple[str, list[str]]]:
    """Each event of a memory in words, and when, where and why it happened; for the person's eyes only."""
    secrets = shown.Secrets(history, in_private=True, branch=branch)
    for commit, event in _events_of(history, secrets.item(item), secrets, branch):
        about = [when(commit), _origin(commit, event, link), _because(event, secrets)]
        yield told(event, secrets), [part for part in about if part]


def _events_of(
    history: History, item: Item, secrets: shown.Secrets, branch: str | None
) -> Iterator[tuple[Commit, Event]]:
    for commit in shown.commits_of(history, branch):
        for event in commit.events:
            if secrets.target(event) == item.id:
                yield commit, event


def _because(event: Event, secrets: shown.Secrets) -> str:
    if not event.evidence or _is_place(event.evidence):
        return ""
    return f"because: {secrets.instead_of_evidence(event) or said(event.evidence)}"


def _origin(commit: Commit, event: Event, link: Link) -> str:
    kind = event.source.partition(":")[0]
    stated = event.ext.get("facets", {}).get("author") == "stated"
    who = "you said so" if stated else "I concluded it"
    if commit.metadata.get("by") == "menu":
        who = "you chose it"
    if kind == "discord":
        return f"{who}, in {link(source_of_event(event.source))}"
    if kind != "manual":
        return f"{who}, {word(event.source)}"
    at = commit.metadata.get("at")
    there = f", in {link(source_of_event(f'discord:{at}'))}" if isinstance(at, str) and _is_place(at) else ""
    return f"you told me directly{there}" if stated else f"set directly{there}"


def _is_place(text: str) -> bool:
    channel, _, message = text.partition("/")
    return channel.isdigit() and message.isdigit()
