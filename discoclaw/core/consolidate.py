"""Consolidation: which of a small model's proposals to tidy a memory are carried out.

The model is shown items and names duplicates, contradictions and outdated ones. The rules:

- An entry may only name items that were shown, have not changed since, have no open question, and were not
  restored after an earlier consolidation; and each of them only once. Other entries are rejected.
- What a person stated is neither changed nor deprecated. It stays, or becomes a question to the person.
- Of duplicates the least private one stays, then the one a person stated, then one with a key, then the one
  the model chose. So nothing disappears from a place where it was visible.
- The remaining item takes text and tags only from items that are as private as itself. So nothing private
  becomes visible.
- If the others say more than the remaining item can take over, the duplicates stay as they are.
- The person is not asked again what they have settled, and at most `MOST_QUESTIONS` questions are open.
- A proposal that would deprecate most of what was shown cannot be right, and is rejected as a whole.

Nothing is removed, only deprecated, so the person can restore it. Pure; knows nothing about models.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, get_args

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event
from discoclaw.core.item import Item, Sensitivity, check_text
from discoclaw.core.patch import Consolidation, Contradiction, Duplicate, Outdated
from discoclaw.core.privacy import stricter
from discoclaw.core.text import clip, collapse, normalise, scrub

# ----------------------------------------------------------------------
# Earlier consolidations in a history: what they reviewed, and what the person decided.


@dataclass(frozen=True, slots=True)
class PastDecisions:
    """The person's decisions on earlier consolidations, so that nothing is asked or done twice.

    `answered`: questions the person has settled, as an item's id and the normalised text that contradicted
    it. `kept`: ids of items that a consolidation had deprecated and that were then restored.
    """

    answered: frozenset[tuple[str, str]] = frozenset()
    kept: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Review:
    """How far a branch was reviewed: up to one of the commits `heads`, at a time (ms).

    `left` are the ids of items that were not.
    """

    heads: frozenset[str] = frozenset()
    at: int = 0
    left: frozenset[str] = frozenset()


def changed_since(chain: Sequence[Commit], heads: Collection[str]) -> set[str] | None:
    """The ids of items that were added or changed after the newest of some commits of a branch.

    None if the branch has none of them, so that nothing of it was reviewed.
    """
    found: set[str] = set()
    for commit in reversed(chain):
        if commit.id in heads:
            return found
        changes = (event for event in commit.events if event.event_type in ("add", "modify"))
        found |= {target for event in changes if "link" not in event.ext and (target := _target(event))}
    return None


def past_decisions(chain: Iterable[Commit]) -> PastDecisions:
    """The decisions on a branch, given its commits in order. Rewording an item makes it a new case."""
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
                if commit.metadata.get("by") != "extraction":  # learning it once more is not a decision
                    kept.add(target)
    return PastDecisions(frozenset(answered), frozenset(kept))


def _target(event: Event) -> str | None:
    given: Any = event.ext.get("item", {}).get("id")
    return given if isinstance(given, str) else None


# ----------------------------------------------------------------------
# The result of a consolidation, in numbers and in lines for people.


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report, and the sensitivity of the items it quotes."""

    text: str
    sensitivity: Sensitivity = "normal"


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """The result of a consolidation: numbers, and lines for people.

    `refused` is for the log: why proposals were rejected. `branch` has been consolidated up to the commit
    `head`, except the items `left` (ids). `commit` is the one that was recorded, None if there was nothing to
    do.
    """

    merged: int = 0
    outdated: int = 0
    questions: int = 0
    lines: tuple[Line, ...] = ()
    refused: tuple[str, ...] = ()
    branch: str = ""
    head: str | None = None
    left: frozenset[str] = frozenset()
    commit: Commit | None = None

    def __add__(self, other: "ConsolidationReport") -> "ConsolidationReport":
        """Both reports as one. Branch, head, left and commit are this one's."""
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
        """How many changes of each kind were made, as stored in the commit's metadata."""
        return {"merged": self.merged, "outdated": self.outdated, "questions": self.questions}

    @property
    def summary(self) -> str:
        """The numbers in words: "2 duplicates merged, 1 outdated, 1 question"; "" if nothing was done."""
        parts = (
            (self.merged, "duplicate merged" if self.merged == 1 else "duplicates merged"),
            (self.outdated, "outdated"),
            (self.questions, "question" if self.questions == 1 else "questions"),
        )
        return ", ".join(f"{count} {what}" for count, what in parts if count)

    def text(self, *, in_private: bool) -> str:
        """The report for people. Unless `in_private`, lines about private items read "(private)"."""
        head = f"Tidied: {self.summary}." if self.summary else "Nothing to tidy."
        shown = (
            line.text if line.sensitivity == "normal" or in_private else "(private)" for line in self.lines
        )
        return "\n".join([head, *(f"- {line}" for line in shown)])


T = TypeVar("T")

MOST_GONE = 10
"""One consolidation may deprecate this many items, or half of those shown if that is more."""
MOST_QUESTIONS = 10
"""Open questions to a person; people stop reading longer lists."""
LONGEST_REASON = 200
"""In UTF-16 units. Reasons are the model's own words, and end up in the history."""

_LEVELS: tuple[Sensitivity, ...] = get_args(Sensitivity)


def available(items: Iterable[Item], questions: Iterable[str]) -> list[Item]:
    """The items a consolidation may name: active ones, without an open question (`questions`: their ids)."""
    asked = set(questions)
    return [item for item in items if item.active and item.id not in asked]


def apply_proposal(
    draft: Draft,
    proposal: Consolidation,
    shown: Mapping[str, Item],
    origin: Origin,
    past: PastDecisions | None = None,
) -> ConsolidationReport:
    """Add a model's proposal about the items it was shown (by id) to a draft, as far as the rules allow.

    `origin` is "inferred". Its `said_at` is when the items were read, and it is private if they are.
    """
    # A confused model tends to name everything. Checked before anything is changed.
    wanted = {one for entry in proposal.duplicates for one in entry.drop}
    wanted |= {entry.id for entry in proposal.outdated}
    if len(wanted) > max(MOST_GONE, len(shown) // 2):
        return ConsolidationReport(
            refused=(f"it would deprecate {len(wanted)} of {len(shown)} items, which is too many",)
        )
    tidying = _Tidying(draft, shown, origin, past or PastDecisions())
    tidying.each(proposal.duplicates, tidying.duplicate)
    tidying.each(proposal.contradictions, tidying.contradiction)
    tidying.each(proposal.outdated, tidying.out)
    return tidying.report


@dataclass(slots=True)
class _Tidying:
    """One proposal being applied."""

    draft: Draft
    shown: Mapping[str, Item]
    origin: Origin
    past: PastDecisions
    report: ConsolidationReport = field(default_factory=ConsolidationReport)
    _free: set[str] = field(init=False)
    _named: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        asked = [one for c in self.draft.view.conflicts for one in (c.item_id, c.other_id)]
        free = available(self.draft.items.values(), asked)
        same = (item.id for item in free if item.id in self.shown and _same(item, self.shown[item.id]))
        self._free = set(same) - self.past.kept

    def each(self, entries: Sequence[T], work: Callable[[T], ConsolidationReport]) -> None:
        """Carry out each entry. One that a rule rejects is noted, and the next one is tried."""
        for entry in entries:
            try:
                self.report += work(entry)
            except Refused as refusal:
                self.report += ConsolidationReport(refused=(str(refusal),))

    def duplicate(self, entry: Duplicate) -> ConsolidationReport:
        group = self._take(entry.keep, *entry.drop)
        if len(group) < 2:
            raise Refused(f"{entry.keep} is named without a duplicate")
        # A key is never moved, so what has one stays.
        keeper = min(
            group,
            key=lambda item: (_level(item), item.facets.author != "stated", item.facets.key is None),
        )
        alike = all(_level(item) == _level(keeper) for item in group)
        takes = alike and keeper.facets.author == "inferred"
        words = self._merged(entry.text, group)
        if not takes and _words(words) - _words(keeper.text):  # deprecating the others would lose something
            raise Refused(f"{keeper.id} can't take over what its duplicates say beyond it")
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
            lines.append(_line(f"kept as they were stated: {_texts([keeper, *stay])}", group))
        return ConsolidationReport(merged=len(gone), lines=tuple(lines))

    def contradiction(self, entry: Contradiction) -> ConsolidationReport:
        named = self._take(entry.older, entry.newer)
        reason = self._reason(entry.reason, named)
        older, newer = sorted(named, key=lambda item: item.updated_at)  # by date, whatever the model says
        # If the model has the order wrong, or one item is private, leave the decision to the person.
        sure = older is named[0] and _level(older) == _level(newer)
        if sure and (older.facets.author, newer.facets.author) == ("inferred", "stated"):
            why = f"contradicted by {newer.id}: {reason}" if reason else f"contradicted by {newer.id}"
            self.draft.deprecate(older, self._because(why))
            now = _line(f"no longer true: {older.text} Now: {newer.text}", named)
            return ConsolidationReport(outdated=1, lines=(now,))
        self._may_ask((older.id, newer.text), (newer.id, older.text))  # the same question either way round
        self.draft.contradict(older, newer, reason, self._because(reason))
        return ConsolidationReport(questions=1, lines=(_line(f"to settle: {_texts([older, newer])}", named),))

    def out(self, entry: Outdated) -> ConsolidationReport:
        (item,) = self._take(entry.id)
        reason = self._reason(entry.reason, [item])
        if item.facets.author == "inferred":
            self.draft.deprecate(item, self._because(reason or "outdated"))
            return ConsolidationReport(outdated=1, lines=(_line(f"no longer true: {item.text}", [item]),))
        self._may_ask((item.id, ""))
        if self.draft.deprecate(item, self._because(reason or "it may be outdated")) != "conflict":
            raise Refused(f"{item.id} was stated again since it was shown")
        return ConsolidationReport(questions=1, lines=(_line(f"still true? {item.text}", [item]),))

    def _take(self, *ids: str) -> list[Item]:
        """The items that an entry names. Raises Refused unless all may be named, and for the first time."""
        for number, one in enumerate(ids):
            if one not in self.shown:
                raise Refused(f"{one[:60]!r} is not one of the items that were shown")
            if one in self._named or one in ids[:number]:
                raise Refused(f"{one} is named twice")
            if one not in self._free:
                raise Refused(f"{one} has changed since it was shown, or is up to the person")
        self._named.update(ids)
        return [self.draft.items[one] for one in ids]

    def _merged(self, text: str | None, group: Sequence[Item]) -> str:
        """The proposed text for a group, "" if there is none. Raises Refused if it is implausible."""
        if text is None or not collapse(text):
            return ""
        words = check_text(text)
        # Up to one and a half times the longest item: a text much longer than that was made up.
        if len(words) * 2 > max(len(item.text) for item in group) * 3:
            raise Refused(f"the merged text of {group[0].id} has {len(words)} characters, which is too long")
        self._keeps_secrets(words, group)
        return words

    def _reason(self, reason: str, items: Sequence[Item]) -> str:
        tidy = clip(collapse(scrub(reason)), LONGEST_REASON)
        self._keeps_secrets(tidy, items)
        return tidy

    def _keeps_secrets(self, words: str, items: Sequence[Item]) -> None:
        """Raise Refused if a model's text contains a more private item, which it was never shown."""
        level, plain = min(_level(item) for item in items), normalise(words)
        own = [normalise(item.text) for item in items]
        for item in self.draft.items.values():
            secret = normalise(item.text)
            if _level(item) > level and secret in plain and not any(secret in one for one in own):
                raise Refused("the text reveals a more private item")

    def _take_over(self, keeper: Item, gone: Sequence[Item], words: str) -> None:
        group = [keeper, *gone]
        tags = list(dict.fromkeys(tag for item in group for tag in item.tags))
        # Keep a message as the source: if the ledger is lost, items from messages count as private.
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
        # Tidying isn't news: what it merges must not become newer than a word that came after all of it.
        latest = {"updatedAt": max(item.updated_at for item in group)}
        if (merged := self.draft.items[keeper.id]) != keeper:
            self.draft.emit("modify", merged, latest, origin)

    def _may_ask(self, *questions: tuple[str, str]) -> None:
        if any((one, normalise(text)) in self.past.answered for one, text in questions):
            raise Refused(f"the person has already settled that about {questions[0][0]}")
        if len(self.draft.view.conflicts) >= MOST_QUESTIONS:
            raise Refused(f"{MOST_QUESTIONS} questions are waiting for the person already")

    def _because(self, evidence: str) -> Origin:
        return replace(self.origin, evidence=evidence)


def _level(item: Item) -> int:
    """How private an item is; a higher number is more private."""
    return _LEVELS.index(item.facets.sensitivity)


def _same(one: Item, other: Item) -> bool:
    """Whether an item is unchanged, in what the model was shown and in what the rules depend on."""
    return (one.text, one.status, one.facets.sensitivity, one.facets.author, one.updated_at) == (
        other.text,
        other.status,
        other.facets.sensitivity,
        other.facets.author,
        other.updated_at,
    )


def _words(text: str) -> set[str]:
    """All words of a text, including function words: "not" makes a difference."""
    return set(re.findall(r"\w+", normalise(text)))


def _texts(items: Sequence[Item]) -> str:
    return " / ".join(item.text for item in items)


def _line(text: str, items: Sequence[Item]) -> Line:
    secret: Sensitivity = "normal"
    for item in items:
        secret = stricter(secret, item.facets.sensitivity)
    return Line(text, secret)
