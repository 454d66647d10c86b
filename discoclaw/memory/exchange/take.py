"""The additions of an import to a memory: records for the store to append, and a report about them.

The import of a history is a union: unknown records are added, and none is removed. Memories without a history
become one commit on the current branch, under the rules of drafts: existing items stay as they are, and where
the file contradicts one, that is a conflict for the person to settle.
All or nothing, and pure. Importing the same twice adds nothing. Independent of files.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import MOST_BRANCHES, History, union
from discoclaw.core.item import Item, by_newest
from discoclaw.core.privacy import PRESUMED, DmPrivacy, presumed_private, sensitivity, stricter
from discoclaw.core.redact import redact
from discoclaw.core.text import normalise
from discoclaw.core.times import iso_ms, ms_of_iso
from discoclaw.core.view import Conflict, target_of
from discoclaw.memory.exchange.histories import Records
from discoclaw.memory.exchange.load import Content, Imported, Items

MOST_LIVE = 2_000
"""The most memories of a branch after an import, unless more are usual here."""
MOST_AHEAD_MS = 86_400_000
"""How far in the future a record may be dated: clocks differ, and times only ever rise in a ledger."""

_SAYS_OTHERWISE = "an import says otherwise"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an import.

    `records` counts the new records, `commits` the new commits among them; `branches` names the new branches.
    `items` counts the memories added from a file without a history, `conflicts` those that contradict an
    existing one. `private` counts the new memories that are private only because the file doesn't say that
    they are open. `known` counts what existed already, `erased` what was left out because it was erased here.
    `rejected` has a sentence for each memory that was not imported, `redacted` counts texts from which
    secrets were removed, and `notes` are sentences that people should read.

    Of a history with `gaps`, `lost` counts commits that nobody has any more, and `withheld` those that never
    left the disk that wrote them. `refused` says why nothing was taken.
    """

    records: int = 0
    commits: int = 0
    branches: tuple[str, ...] = ()
    items: int = 0
    private: int = 0
    conflicts: int = 0
    known: int = 0
    erased: int = 0
    redacted: int = 0
    rejected: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    lost: int = 0
    withheld: int = 0
    refused: str = ""

    @property
    def nothing(self) -> bool:
        """Whether the import changed nothing."""
        return not (self.records or self.items or self.conflicts)


def records_for(
    imported: Imported | Content,
    history: History,
    *,
    now_ms: int,
    max_items: int,
    origin: Origin,
    erased_at: int = -1,
) -> tuple[list[Record], Report]:
    """Return the records that an import adds to a history, and a report.

    `origin` is who imports: memories that a file calls stated count as stated only if `origin` is stated, and
    what may have been said in private is private by its `dm_privacy`. `max_items` is the most items of a
    branch; more are rejected, and never replace existing ones. Records dated at or before `erased_at` (ms)
    are left out, and so is what later records repeat of them. An `Imported` has to be about one person;
    `Imported.content` picks one. Raises Refused with the way out, and then nothing must be written.
    """
    content = imported.content() if isinstance(imported, Imported) else imported
    if isinstance(content, Records):
        content = _with_private(content, origin.dm_privacy)
        records, report = _united(content, history, now_ms, max_items, erased_at)
        if content.gaps is not None:  # our own, in which secrets are withheld
            return records, report
        presumed = presumed_private(record for record in records if _has_unmarked(record, content))
        secrets = 0
        for commit in (record for record in records if isinstance(record, Commit)):
            texts = [commit.message]
            for event in commit.events:
                item = event.ext.get("item", {})
                texts += [event.subject, event.predicate, event.object, event.evidence, item.get("text", "")]
            secrets += any(redact(text).redacted for text in texts)
        if secrets:
            told = (
                f"{secrets} of the imported commits hold what looks like a key or token; "
                "a history cannot be changed, so forget those memories, or import without history"
            )
            report = replace(report, notes=(*report.notes, told))
        return records, replace(report, private=len(presumed))
    return _one_commit(content, history, now_ms, max_items, origin, erased_at)


# ---------------------------------------------------------------------- histories


def _united(
    content: Records, history: History, now_ms: int, max_items: int, erased_at: int
) -> tuple[list[Record], Report]:
    """Return what `records_for` does, for records of another replica, which are not searched for secrets.

    Without an existing history they are added as they are, in their order, after the records that stand for
    what was erased. Raises Refused.
    """
    here, missing, mended = history.commits.keys() | history.accepted, frozenset[str](), 0
    report = Report(notes=content.notes)
    if content.gaps is not None:
        records, missing = _with_mends(content.records, here, content.gaps, after=erased_at)
        mended, content = len(records) - len(content.records), replace(content, records=records)
        withheld = len((content.gaps or {}).keys() - {record.id for record in history.records})
        report = replace(report, lost=len(missing), withheld=withheld)
    fresh, erased = _news(content, history, now_ms + MOST_AHEAD_MS, erased_at)
    report = replace(report, known=len(content.records) - len(erased) - len(fresh), erased=len(erased))
    if all(isinstance(record, Ref) and record.action == "union" for record in fresh):
        return [], report  # that another replica imported something isn't news by itself
    whole = History(union(history.records, fresh))
    lost = _lost(history, whole, erased)
    before, after = history.branches.all, whole.branches.all
    if len(after) > max(MOST_BRANCHES, len(before)):
        raise Refused(
            f"together that would be {len(after)} branches, and {MOST_BRANCHES} are the most; "
            "delete some here or there, and export it again"
        )
    if content.gaps is None:  # our own were here before
        _refuse_crowds(history, whole, max_items)
    now_ms = whole.branches.next_ms(now_ms)
    by = {"by": "import"}
    mends = [
        Ref(action="mend", branch="", head=parent, timestamp=iso_ms(now_ms + number), metadata=by)
        for number, parent in enumerate(lost)
    ]
    last = []
    if history.records:  # else the times are as they were, and so is the file that shows them
        moved = iso_ms(now_ms + len(mends))
        counted = {**by, "records": len(fresh)}
        last = [Ref(action="union", branch="", timestamp=moved, metadata=counted)]
        order = {record.id: number for number, record in enumerate(whole.records)}
        fresh.sort(key=lambda record: order[record.id])
    report = replace(
        report,
        records=max(0, len(fresh) - mended),
        commits=sum(isinstance(record, Commit) for record in fresh),
        branches=tuple(name for name in after if name not in before),
    )
    # The mends come first, so that no orphans are left if the rest is cut off.
    return [*mends, *fresh, *last], report


def _news(content: Records, history: History, latest: int, erased_at: int) -> tuple[list[Record], set[str]]:
    """The records that the history lacks, and the ids of those that were erased here.

    Raises Refused for a record dated after `latest` (ms), and for a commit that differs from the one here.
    """
    known = {record.id: record for record in history.records}
    fresh: list[Record] = []
    erased: set[str] = set()
    gone: set[str] = set()  # events in what is left out
    for record in content.records:
        when, held = ms_of_iso(record.timestamp), known.get(record.id)
        if when > latest:
            raise Refused(
                f"the record {record.id} is dated {record.timestamp}, which is in the future; "
                "set the clock right, here or where it comes from, and export it again"
            )
        # A later record repeats words that were erased too: a merge copies events, and a change of an item,
        # an undo included, repeats the item's words.
        events = record.events if isinstance(record, Commit) else ()
        repeats = any(one.parent_id in gone or ms_of_iso(one.timestamp) <= erased_at for one in events)
        if when <= erased_at or repeats:
            erased.add(record.id)
            gone.update(event.id for event in events)
        elif held is None:
            fresh.append(record)
        elif isinstance(record, Commit) and held.hash != record.hash and not _has_unmarked(record, content):
            raise Refused(
                f"the commit {record.id} is here already with different content; "
                "one of the two was changed, so nothing is imported: export it again"
            )
    return fresh, erased


def _refuse_crowds(history: History, whole: History, max_items: int) -> None:
    """Refuse a branch with far too many memories: its next change would be slow, and remove most of them."""
    most = max(MOST_LIVE, 2 * max_items)
    if sum(len(commit.events) for commit in whole.commits.values()) <= most:
        return  # not all branches together have so many
    for name, branch in whole.branches.all.items():
        before = history.branches.all.get(name)
        held = len(history.view(before.head).items) if before is not None else 0
        count = len(whole.view(branch.head).items)
        if count > max(most, held):
            raise Refused(
                f"the branch {name!r} would have {count:,} memories, and a branch has at most {max_items}; "
                "forget some where it comes from, and export it again"
            )


def _lost(history: History, whole: History, erased: set[str]) -> list[str]:
    """The parents of other commits that were erased here. Raises Refused for one that is merely missing."""
    orphans = {key: parent for key, parent in whole.orphans().items() if key not in history.commits}
    for key, parent in orphans.items():
        if parent not in erased:
            raise Refused(
                f"the commit {key} follows {parent}, which is neither in the file nor here; "
                "the file was cut, so export it again"
            )
    return sorted(set(orphans.values()))


def _with_mends(
    records: Sequence[Record],
    known: AbstractSet[str],
    withheld: Mapping[str, str | None],
    *,
    after: int = -1,
) -> tuple[tuple[Record, ...], frozenset[str]]:
    """The records, with a mend before each that continues a commit which is neither here nor `known`.

    Also the ids of the commits that are lost, which are those not `withheld` either. A mend is dated just
    before the record after it, so that every replica writes the same mend for the same gap. Records dated
    up to `after` (ms) need none: they were erased.
    """
    here = {record.id for record in records} | known
    done = {one.head for one in records if isinstance(one, Ref) and one.action == "mend"}
    gaps: set[str] = set()
    result: list[Record] = []
    for record in records:
        when = ms_of_iso(record.timestamp)
        # The commit that the record continues, which has to be here or be accepted as lost.
        if isinstance(record, Commit):
            parent = record.parent_id
        else:
            parent = record.head if record.action == "create" and record.head in withheld else None
        if parent is not None and parent not in here and parent not in done and when > after:
            metadata: dict[str, Any] = {"by": "recovery"}
            if parent in withheld:
                metadata["follows"] = _last_kept(parent, withheld, here)
            at = iso_ms(max(when - 1, after + 1))
            result.append(Ref(action="mend", branch="", head=parent, timestamp=at, metadata=metadata))
            done.add(parent)
            gaps.add(parent)
        result.append(record)
    return tuple(result), frozenset(gaps - withheld.keys())


def _last_kept(commit: str, withheld: Mapping[str, str | None], here: AbstractSet[str]) -> str | None:
    """The newest commit that is here before a withheld one; None if there is none."""
    seen: set[str] = set()
    at: str | None = commit
    while at is not None and at not in here and at not in seen:
        seen.add(at)
        at = withheld.get(at)
    return at if at in here else None


# ---------------------------------------------------------------------- memories


def _one_commit(
    content: Items, history: History, now_ms: int, max_items: int, origin: Origin, erased_at: int
) -> tuple[list[Record], Report]:
    branch = history.branches.current
    draft = Draft(
        history.view(history.branches.all[branch].head),
        now_ms=history.branches.next_ms(now_ms),
        max_items=max_items,
    )
    dated = []
    for item in content.items:  # with times that are known and not in the future
        updated = min(item.updated_at or now_ms, now_ms)
        created = min(item.created_at or updated, updated)
        facets = replace(item.facets, author=item.facets.author if origin.author == "stated" else "inferred")
        dated.append(replace(item, created_at=created, updated_at=updated, facets=facets))
    wanted = [item for item in dated if item.updated_at > erased_at]
    held, new = known_and_new(wanted, draft, content.unmarked, origin.dm_privacy)
    again: list[Item] = []
    rejected = list(content.rejected)
    if origin.author == "inferred":  # what the person removed comes back only if they say so
        forgotten = draft.view.forgotten
        gone = {item.id for item in new if forgotten.get(item.id, -1) >= item.updated_at}
        rejected += [_left_out(item, "it was forgotten since") for item in new if item.id in gone]
        new = [item for item in new if item.id not in gone]
    # Active and new ones first, if there is not room for all.
    by_worth = sorted(sorted(new, key=by_newest), key=lambda item: not item.active)
    fit = {item.id for item in by_worth[: max(0, max_items - len(draft.items))]}
    new, beyond = [one for one in new if one.id in fit], [one for one in new if one.id not in fit]
    full = f"there is no room for more than {max_items} memories; forget some first"
    for item in new:
        draft.set_item(
            item.id, replace(item, facets=replace(item.facets, links=frozenset())), parent=None, origin=origin
        )
    for item in new:
        for far in sorted(item.facets.links & draft.items.keys() - {item.id}):
            draft.link(draft.items[item.id], draft.items[far], origin)
    rejected += [_left_out(item, full) for item in beyond]
    open_ = {(one.item_id, one.text) for one in draft.view.conflicts}
    before = len(open_)
    met: dict[str, str] = {}
    for other, item in held:
        if content.skips_known or other.id not in draft.items:
            continue
        ours, words = draft.items[other.id], normalise(item.text)
        asks = ours.active and item.active and words != normalise(ours.text)
        if asks and met.setdefault(other.id, words) != words:
            again.append(item)  # one question about a memory can be answered, thousands cannot
            continue
        # The existing one stays. Privacy is only ever raised; a different text is a question to the person.
        secret = stricter(ours.facets.sensitivity, item.facets.sensitivity)
        if words == normalise(ours.text):
            draft.mark(ours, secret, origin)
        elif asks and (ours.id, item.text) not in open_:
            open_.add((ours.id, item.text))
            draft.note_conflict(Conflict(ours.id, item.text, _SAYS_OTHERWISE, "", secret), origin)
    rejected += [_left_out(item, "another memory of the file takes its place") for item in again]
    conflicts = len(open_) - before
    kept_private = [item.id for item in new if item.facets.sensitivity == "private"]
    presumed = sorted(content.unmarked.intersection(kept_private))
    told: dict[str, Any] = {PRESUMED: presumed} if presumed else {}
    commit = draft.commit("imported", branch=branch, by="import", **told)
    report = Report(
        items=len(new),
        private=len(presumed),
        conflicts=conflicts,
        known=len(held) - conflicts - len(again),
        erased=len(dated) - len(wanted),
        redacted=content.redacted,
        rejected=tuple(rejected),
        notes=content.notes,
    )
    return ([commit] if commit is not None else []), report


def _left_out(item: Item, why: str) -> str:
    return f"{item.id} (“{item.text[:60]}”): {why}"


# ---------------------------------------------------------------------- collisions


def known_and_new(
    items: Iterable[Item], draft: Draft, unmarked: AbstractSet[str], rule: DmPrivacy
) -> tuple[list[tuple[Item, Item]], list[Item]]:
    """The items that collide with another, each beside that one, and those that don't.

    `unmarked` are the ids of those that may have been said in private; `rule` decides about them.
    """
    held, new = [], []
    places = _Places(draft.items.values())
    for item in items:
        other = places.of(item)
        # Repeating what is known, maybe in private, makes it no less open.
        repeats = other is not None and normalise(other.text) == normalise(item.text)
        if item.id in unmarked and not repeats:
            level = sensitivity(
                item.kind,
                item.text,
                inferred=item.facets.author == "inferred",
                learned_privately=True,
                marked=item.facets.sensitivity,
                rule=rule,
            )
            item = replace(item, facets=replace(item.facets, sensitivity=level))
        if other is None:
            places.add(item)
            new.append(item)
        else:
            held.append((other, item))
    return held, new


class _Places:
    """Finds the item, existing or just imported, that a new one would collide with."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._by: dict[tuple[str, str], Item] = {}
        for item in items:
            self.add(item)

    def add(self, item: Item) -> None:
        for place in self._places(item):
            self._by.setdefault(place, item)

    def of(self, item: Item) -> Item | None:
        return next((self._by[place] for place in self._places(item) if place in self._by), None)

    @staticmethod
    def _places(item: Item) -> Sequence[tuple[str, str]]:
        """The places of an item: its id, its key, and its text."""
        key = item.facets.key if item.active else None
        keyed = [("key", key)] if key is not None else []
        return [("id", item.id), *keyed, (item.kind, normalise(item.text))]


# ---------------------------------------------------------------------- what may be private
# A file may say neither how private something is nor where it was said. Whether it then is private is decided
# by DISCOCLAW_DM_PRIVACY, as for what the bot learns in private itself.


def _with_private(content: Records, rule: DmPrivacy) -> Records:
    """A history whose events are as private as the rule makes them, where they don't say it themselves.

    The ids of events and commits stay: the sensitivity of an event counts only for its hash.
    """
    if not content.unmarked or rule == "open":
        return content

    def marked(event: Event) -> Event:
        # Such an event is a triple, which becomes a fact; no rule lets one leave a DM.
        return replace(event, sensitivity="private") if event.id in content.unmarked else event

    def rebuilt(record: Record) -> Record:
        if not _has_unmarked(record, content):
            return record
        events = tuple(map(marked, record.events))
        named = sorted({target_of(event, {}) for event in events if event.id in content.unmarked})
        return replace(record, events=events, metadata={**record.metadata, PRESUMED: named})

    return replace(content, records=tuple(map(rebuilt, content.records)))


def current_items(content: Records, rule: DmPrivacy) -> Items:
    """The active memories of a history, on its current branch."""
    history = History(_with_private(content, rule).records)
    items = tuple(history.shown().active())
    presumed = presumed_private(one for one in history.commits.values() if _has_unmarked(one, content))
    secret = {item.id for item in items if item.facets.sensitivity == "private"}
    return Items(items, unmarked=frozenset(presumed & secret))


def _has_unmarked(record: Record, content: Records) -> TypeGuard[Commit]:
    """Whether a record has events that don't say how private they are."""
    return isinstance(record, Commit) and any(event.id in content.unmarked for event in record.events)
