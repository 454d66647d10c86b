"""Consolidation: which of a small model's wishes to tidy a memory come true.

The model names items it was shown: duplicates, contradictions, what is outdated. The rules:

- Only an item counts that was shown, is still as it was shown, has no question open about it, and was not
  brought back after an earlier consolidation. Each is named once. An entry that breaks this is refused.
- What a person stated is neither changed nor set aside: it is left, or becomes a question to the person.
- Of duplicates the one stays that is visible in most places, then the one that was stated, then the one
  the model chose. So nothing vanishes from where it was visible.
- The one that stays takes words and tags only from items as private as itself. So nothing private shows.
- Words that nobody can take over, although they say more than what stays, leave all as it is.
- What the person has settled is not asked again, and at most `MOST_QUESTIONS` wait at a time.
- A proposal that would set aside most of what was shown is nonsense, and refused as a whole.

Nothing is removed: what goes is deprecated, and the history has it. Pure; knows nothing about models.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, get_args

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import Item, Sensitivity, check_text
from discoclaw.core.patch import Consolidation, Contradiction, Duplicate, Outdated
from discoclaw.core.privacy import stricter
from discoclaw.core.text import clip, collapse, normalise, scrub

T = TypeVar("T")

MOST_GONE = 10
"""So many items may always be set aside at once; of more, half of what was shown."""
MOST_QUESTIONS = 10
LONGEST_REASON = 200

_LEVELS: tuple[Sensitivity, ...] = get_args(Sensitivity)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report, and how private what it quotes is."""

    text: str
    sensitivity: Sensitivity = "normal"


@dataclass(frozen=True, slots=True)
class Report:
    """What a consolidation came to. `refused` is for the log: wishes that a rule did not grant, and why.

    `branch` and `head` say what is tidy now: the branch as far as the commit `head`. `commit` is the one that
    was recorded, None when there was nothing to do.
    """

    merged: int = 0
    outdated: int = 0
    questions: int = 0
    lines: tuple[Line, ...] = ()
    refused: tuple[str, ...] = ()
    branch: str = ""
    head: str | None = None
    commit: Commit | None = None

    def __add__(self, other: "Report") -> "Report":
        """Both as one; branch, head and commit are this one's."""
        return replace(
            self,
            merged=self.merged + other.merged,
            outdated=self.outdated + other.outdated,
            questions=self.questions + other.questions,
            lines=self.lines + other.lines,
            refused=self.refused + other.refused,
        )

    @property
    def counts(self) -> dict[str, int]:
        """What was done, by kind."""
        return {"merged": self.merged, "outdated": self.outdated, "questions": self.questions}

    @property
    def summary(self) -> str:
        """What was done, in a few words: "2 duplicates merged, 1 outdated, 1 question"; "" for nothing."""
        parts = (
            (self.merged, "duplicate merged" if self.merged == 1 else "duplicates merged"),
            (self.outdated, "outdated"),
            (self.questions, "question" if self.questions == 1 else "questions"),
        )
        return ", ".join(f"{count} {what}" for count, what in parts if count)

    def text(self, *, in_private: bool) -> str:
        """The report for people. In the open, lines about private items only say that they are."""
        head = f"Tidied: {self.summary}." if self.summary else "Nothing to tidy."
        shown = (
            line.text if line.sensitivity == "normal" or in_private else "(private)" for line in self.lines
        )
        return "\n".join([head, *(f"- {line}" for line in shown)])


@dataclass(frozen=True, slots=True)
class PastDecisions:
    """What was decided about earlier consolidations, so that nothing is asked or done again and again.

    `answered` are the questions the person has settled: an item's id and the (normalised) words against it.
    `kept` are the items that a consolidation had set aside, and that were brought back.
    """

    answered: frozenset[tuple[str, str]] = frozenset()
    kept: frozenset[str] = frozenset()


def past_decisions(chain: Iterable[Commit]) -> PastDecisions:
    """What was decided on a branch, given its commits. An item's new words make a new case of it."""
    answered: set[tuple[str, str]] = set()
    gone: set[str] = set()
    kept: set[str] = set()
    words: dict[str, str] = {}
    for commit in chain:
        tidied = "consolidated" in commit.metadata
        for event in commit.events:
            target, body = _target(event), event.ext.get("item", {})
            if target is None:
                continue
            noted = event.ext.get("conflict", {})
            if event.event_type == "observe" and noted.get("settled"):
                answered.add((target, normalise(str(noted.get("text", "")))))
            text = normalise(str(body.get("text", words.get(target, ""))))
            if text != words.get(target, text):
                answered = {pair for pair in answered if pair[0] != target}
                kept.discard(target)
            words[target] = text
            if body.get("status") == "deprecated":
                (gone.add if tidied else gone.discard)(target)
            elif target in gone and body.get("status") == "active" and not tidied:
                gone.discard(target)
                if commit.metadata.get("by") != "extraction":  # it learned the same words once more
                    kept.add(target)
    return PastDecisions(frozenset(answered), frozenset(kept))


def available(items: Iterable[Item], questions: Iterable[str]) -> list[Item]:
    """The items that may be tidied: those that hold, and about which (`questions`, by id) none is open."""
    asked = set(questions)
    return [item for item in items if item.active and item.id not in asked]


def apply(
    draft: Draft,
    proposal: Consolidation,
    shown: Mapping[str, Item],
    origin: Origin,
    past: PastDecisions | None = None,
) -> Report:
    """Draft what a model proposes about the items it was shown, by id, as far as the rules grant it.

    `origin` is "inferred"; its `said_at` is when the items were looked at, and it is `private` when they are.
    """
    wanted = {one for entry in proposal.duplicates for one in entry.drop}
    wanted |= {entry.id for entry in proposal.outdated}
    if len(wanted) > max(MOST_GONE, len(shown) // 2):
        return Report(refused=(f"{len(wanted)} of {len(shown)} items were to go, which can not be meant",))
    tidying = _Tidying(draft, shown, origin, past or PastDecisions())
    tidying.each(proposal.duplicates, tidying.duplicate)
    tidying.each(proposal.contradictions, tidying.contradiction)
    tidying.each(proposal.outdated, tidying.out)
    return tidying.report


# ---------------------------------------------------------------------- inside


@dataclass(slots=True)
class _Tidying:
    """One proposal being applied."""

    draft: Draft
    shown: Mapping[str, Item]
    origin: Origin
    past: PastDecisions
    report: Report = field(default_factory=Report)
    _free: set[str] = field(init=False)
    _named: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        asked = [one for c in self.draft.view.conflicts for one in (c.item_id, c.other_id)]
        held = available(self.draft.items.values(), asked)
        same = (item.id for item in held if item.id in self.shown and _same(item, self.shown[item.id]))
        self._free = set(same) - self.past.kept

    def each(self, entries: Sequence[T], work: Callable[[T], Report]) -> None:
        """Do what each entry asks for; what a rule refuses is noted, and the others go on."""
        for entry in entries:
            try:
                self.report += work(entry)
            except Refused as refusal:
                self.report += Report(refused=(str(refusal),))

    def duplicate(self, entry: Duplicate) -> Report:
        group = self._take(entry.keep, *entry.drop)
        if len(group) < 2:
            raise Refused(f"{entry.keep} alone is no duplicate")
        keeper = min(group, key=lambda item: (_level(item), item.facets.author != "stated"))
        alike = all(_level(item) == _level(keeper) for item in group)
        takes = alike and keeper.facets.author == "inferred"
        words = self._merged(entry.text, group)
        if not takes and _words(words) - _words(keeper.text):
            raise Refused(f"{keeper.id} can not take over what the others say beyond it")
        stay = [item for item in group if item.facets.author == "stated" and item is not keeper]
        gone = [item for item in group if item.facets.author == "inferred" and item is not keeper]
        if takes:
            self._take_over(keeper, gone, words)
        for item in gone:
            self.draft.deprecate(item, self._because(f"duplicate of {keeper.id}"))
        lines = []
        if gone:
            left = self.draft.items[keeper.id].text
            lines.append(_line(f"the same: {left} / {_texts(gone)}", group))
        if stay:
            lines.append(_line(f"left as they were stated: {_texts([keeper, *stay])}", group))
        return Report(merged=len(gone), lines=tuple(lines))

    def contradiction(self, entry: Contradiction) -> Report:
        named = self._take(entry.older, entry.newer)
        reason = self._reason(entry.reason, named)
        older, newer = sorted(named, key=lambda item: item.updated_at)  # its dates, not the model's word
        sure = older is named[0] and _level(older) == _level(newer)
        if sure and (older.facets.author, newer.facets.author) == ("inferred", "stated"):
            why = f"contradicted by {newer.id}: {reason}" if reason else f"contradicted by {newer.id}"
            self.draft.deprecate(older, self._because(why))
            return Report(outdated=1, lines=(_line(f"no longer: {older.text} Since: {newer.text}", named),))
        self._may_ask((older.id, newer.text), (newer.id, older.text))
        self.draft.contradict(older, newer, reason, self._because(reason))
        return Report(questions=1, lines=(_line(f"to be settled: {_texts([older, newer])}", named),))

    def out(self, entry: Outdated) -> Report:
        (item,) = self._take(entry.id)
        reason = self._reason(entry.reason, [item])
        if item.facets.author == "inferred":
            self.draft.deprecate(item, self._because(reason or "outdated"))
            return Report(outdated=1, lines=(_line(f"no longer: {item.text}", [item]),))
        self._may_ask((item.id, ""))
        if self.draft.deprecate(item, self._because(reason or "it may be outdated")) != "conflict":
            raise Refused(f"{item.id} was stated since")
        return Report(questions=1, lines=(_line(f"does it still hold? {item.text}", [item]),))

    def _take(self, *ids: str) -> list[Item]:
        """The items that an entry names. Raises Refused unless each may be tidied, and is named just once."""
        for number, one in enumerate(ids):
            if one not in self.shown:
                raise Refused(f"{one[:60]!r} is none of the items")
            if one in self._named or one in ids[:number]:
                raise Refused(f"{one} is named twice")
            if one not in self._free:
                raise Refused(f"{one} is left alone: it changed meanwhile, or a person decides about it")
        self._named.update(ids)
        return [self.draft.items[one] for one in ids]

    def _merged(self, text: str | None, group: Sequence[Item]) -> str:
        """The one text for a group; "" when there is none. Raises Refused when it can not be one."""
        if text is None or not collapse(text):
            return ""
        words = check_text(text)
        if len(words) * 2 > max(len(item.text) for item in group) * 3:
            raise Refused(f"{len(words)} characters are no merged text of {group[0].id}")
        self._keeps_secrets(words, group)
        return words

    def _reason(self, reason: str, items: Sequence[Item]) -> str:
        tidy = clip(collapse(scrub(reason)), LONGEST_REASON)
        self._keeps_secrets(tidy, items)
        return tidy

    def _keeps_secrets(self, words: str, items: Sequence[Item]) -> None:
        """Raise Refused when words tell a more private item: it was not shown, however it came there."""
        level, plain = min(_level(item) for item in items), normalise(words)
        own = [normalise(item.text) for item in items]
        for item in self.draft.items.values():
            secret = normalise(item.text)
            if _level(item) > level and secret in plain and not any(secret in one for one in own):
                raise Refused("the words tell something more private")

    def _take_over(self, keeper: Item, gone: Sequence[Item], words: str) -> None:
        group = [keeper, *gone]
        tags = list(dict.fromkeys(tag for item in group for tag in item.tags))
        # The message an item came from stays its source: without a ledger, that is what keeps it private.
        source = next((item.source for item in group if item.source.type == "discord"), keeper.source)
        origin = replace(self._because(f"merged with {', '.join(item.id for item in gone)}"), source=source)
        self.draft.upsert(
            keeper.kind,
            words or keeper.text,
            origin,
            tags=tags,
            given_id=keeper.id,
            marked=keeper.facets.sensitivity,
        )

    def _may_ask(self, *questions: tuple[str, str]) -> None:
        if any((one, normalise(text)) in self.past.answered for one, text in questions):
            raise Refused(f"the person has settled that about {questions[0][0]}")
        if len(self.draft.view.conflicts) >= MOST_QUESTIONS:
            raise Refused(f"{MOST_QUESTIONS} questions wait for the person already")

    def _because(self, evidence: str) -> Origin:
        return replace(self.origin, evidence=evidence)


def _level(item: Item) -> int:
    """How private an item is: more is stricter."""
    return _LEVELS.index(item.facets.sensitivity)


def _same(one: Item, other: Item) -> bool:
    """Whether an item is still what it was: its words, and whatever else is changed with a new time."""
    return (one.text, one.status, one.facets.sensitivity, one.facets.author, one.updated_at) == (
        other.text,
        other.status,
        other.facets.sensitivity,
        other.facets.author,
        other.updated_at,
    )


def _words(text: str) -> set[str]:
    """All words of a text, the small ones too: "not" makes a difference."""
    return set(re.findall(r"\w+", normalise(text)))


def _texts(items: Sequence[Item]) -> str:
    return " / ".join(item.text for item in items)


def _line(text: str, items: Sequence[Item]) -> Line:
    secret: Sensitivity = "normal"
    for item in items:
        secret = stricter(secret, item.facets.sensitivity)
    return Line(text, secret)


def _target(event: Event) -> str | None:
    given: Any = event.ext.get("item", {}).get("id")
    return given if isinstance(given, str) else None
