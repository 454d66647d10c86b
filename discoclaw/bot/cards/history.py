"""The card of what changed in a memory: a row for each change, with a button that takes it back."""

from collections.abc import Sequence

from discoclaw.bot.cards.card import GREY, Button, Card, Entry, Picture, Turn
from discoclaw.bot.texts import history as texts
from discoclaw.bot.texts.markup import name, plain
from discoclaw.core.event import Commit, Ref
from discoclaw.core.history import History
from discoclaw.core.merge import ItemChange
from discoclaw.core.pending import is_proposal
from discoclaw.show import text as shown
from discoclaw.show.words import acts, count

TITLE = "What changed in your memory"
MOST = 1000


def difference(found: Sequence[ItemChange], turn: Turn, *, page: int) -> Card:
    """A card of differences between two points: a row for each memory, with what happened to it."""
    entries = [Entry(*texts.changed(change)) for change in found]
    small = [count(len(found), "memory")] if found else []
    return Card(
        "What differs", entries or [Entry(texts.SAME)], small=small, turn=turn, page=page, colour=GREY
    )


def drawn(data: bytes, changes: int, title: str) -> Card:
    """The history as a picture."""
    picture = Picture("memory.png", data, f"{title}, as a graph of its changes")
    return Card(
        title, small=[count(changes, "change")], pictures=[picture], foot=[texts.AS_TEXT], colour=GREY
    )


def log(
    history: History, turn: Turn, *, branch: str | None, oneline: bool, limit: int | None, page: int
) -> Card:
    """A card of the changes of a persona, newest first; `limit` is the most changes shown."""
    records, earlier = shown.newest(history, branch, limit)
    secrets = shown.Secrets(history, in_private=True, branch=branch)
    done_by = texts.teller(history, in_private=True, branch=branch)
    several = len(history.branches.all) > 1
    chain = {one.id for one in history.chain(history.branch(branch).head)} if branch is not None else set()
    entries = []
    for record in records:
        persona = [f"persona {name(record.branch)}"] if several else []
        if isinstance(record, Ref):
            if not oneline:
                entries.append(Entry(_capital(texts.turn(record, in_private=True)), texts.when(record)))
            continue
        done = [] if oneline else [_capital(texts.told(event, secrets)) for event in record.events]
        about = [texts.when(record), *texts.made_by(record), *persona]
        control = None
        if record.id in chain and not all(is_proposal(event) for event in record.events):
            known = f"{turn.user_id}:{record.id}:{{page}}:{limit or MOST}:{branch}"
            control = Button(f"revert:{known}", "Take back")
        # Where the small print says how it came about, a title says no more, unless it names another change.
        needed = not done or acts(record) or not texts.made_by(record)
        title = [f"**{_capital(plain(done_by(record)))}**"] if needed else []
        entries.append(Entry("\n".join([*title, *done]), " · ".join(about), control))
    shown_now = count(len([one for one in records if isinstance(one, Commit)]), "change")
    return Card(
        TITLE,
        entries or [Entry(texts.NOTHING)],
        small=[shown_now] if entries else [],
        foot=[f"and {count(earlier, 'earlier change')}"] if earlier else [],
        turn=turn,
        page=page,
        colour=GREY,
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
