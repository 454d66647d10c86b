"""The memory tools a model may call while it answers. They reach the speaker's own ledger and no other.

A model's word is a wish: inputs are checked, core's rules decide, and a failure is a clear text the model
can act on. Private items are neither found nor touched outside the person's DMs. Every write is one commit
that says which tool made it, during the answer to which message.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from discoclaw.core.consolidate import Report
from discoclaw.core.draft import Draft, Origin, find
from discoclaw.core.errors import MemoryFault, ModelError, Refused
from discoclaw.core.history import MAIN
from discoclaw.core.item import Facets, Item, Kind, by_newest, durable_line, triple_text
from discoclaw.core.model import ToolCall, ToolResult, ToolSpec
from discoclaw.core.ports import LINKED_WITH, NO_SIGNALS, Clock, Offer, Recall, Signals
from discoclaw.core.privacy import may_show, sensitivity
from discoclaw.core.subject import user_subject
from discoclaw.core.text import collapse, normalise
from discoclaw.core.view import View
from discoclaw.memory.people.choices import Choices
from discoclaw.memory.people.last_used import LastUsed
from discoclaw.memory.subjects import verbs
from discoclaw.memory.subjects.store import Memory
from discoclaw.prompt.context import memory_block, names
from discoclaw.recall.query import parse
from discoclaw.session.finding import Finder
from discoclaw.session.meaning import Meaning
from discoclaw.show import text as shown

log = logging.getLogger(__name__)

TIDY_WAIT_S = 25.0
"""A reply waits so long for a consolidation that was asked for; it goes on without."""

NOTHING_FITS = "Nothing is remembered that fits."
TALK_NOT_SEARCHED = "(What was said here before can not be searched right now.)"

Text = Annotated[str, Field(min_length=1, max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Category = Literal["core", "knowledge", "conversation"]


class _Input(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Search(_Input):
    """Search what you remember of the person you are talking to, beyond what is in front of you."""

    query: Text = Field(description="What to look for, in the person's words.")
    scope: Name | None = Field(default=None, description='Only this scope: "permanent", "work/technical", …')
    subject: Name | None = Field(
        default=None, description="Only what is about this subject: a name, or user for the person."
    )
    category: Category | None = Field(default=None, description="Only this category.")
    depth: int = Field(default=0, ge=0, le=2, description="How many links to follow from what is found.")
    limit: int | None = Field(default=None, ge=1, le=50, description="How many items at most.")


class Remembered(Search):
    """The same under its other name, answered as a memory block; fewer items, and none when nothing fits."""


class Store(_Input):
    """Remember something the person asked you to remember: one short sentence in the third person, as text,
    or a triple of subject, predicate and object."""

    text: Text | None = Field(default=None, description='For example "User prefers tabs over spaces."')
    subject: Name | None = Field(default=None, description='Of a triple: "user" for the person, or a name.')
    predicate: Name | None = Field(default=None, description='Of a triple: "prefers backend".')
    object: Text | None = Field(default=None, description='Of a triple: "Python".')
    kind: Kind = Field(default="fact", description="What kind of memory it is.")
    tags: list[str] = Field(default=[], description="Lower-case words by which it will be named.")
    key: Name | None = Field(
        default=None, description="A name for a fact of which there is one: storing it again replaces it."
    )
    links: list[Name] = Field(default=[], max_length=20, description="Ids of items it belongs to.")
    scope: Name = Field(default="permanent", description="permanent, session, temporary, or a free label.")
    category: Category = Field(default="knowledge", description="core is always kept in mind.")
    confidence: float = Field(default=1.0, ge=0, le=1, description="How sure the person seems.")
    private: bool = Field(default=False, description="Keep it between you: use it in DMs only.")

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        parts = (self.subject, self.predicate, self.object)
        if (self.text is None) == (None in parts) or (self.text is not None and any(parts)):
            raise ValueError("give either text, or subject, predicate and object")
        return self


class Update(_Input):
    """Correct something you remember of the person. What it said before stays in the history."""

    id: Name = Field(description='The item\'s id, such as "durable-2ed36192"; memory_search shows it.')
    text: Text = Field(description="The sentence as it is right now.")


class Forget(_Input):
    """Forget something the person asked you to forget, named by item, by key, or by subject and predicate. It
    stays in the history and can be brought back."""

    item: Text | None = Field(default=None, description="The item's id, or at least 60 % of its text.")
    key: Name | None = Field(default=None, description="Its key.")
    subject: Name | None = Field(default=None, description="Of a triple; needs predicate too.")
    predicate: Name | None = Field(default=None, description="Of a triple; needs subject too.")
    object: Text | None = Field(default=None, description="Of a triple, where several objects are known.")
    scope: Name | None = Field(default=None, description="Only in this scope; without it, in every one.")

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if (self.subject is None) != (self.predicate is None):
            raise ValueError("subject and predicate go together")
        if sum(one is not None for one in (self.item, self.key, self.subject)) != 1:
            raise ValueError("name it by item, by key, or by subject and predicate")
        return self


class Link(_Input):
    """Link two items that belong together, so that finding one finds the other; or part them."""

    item: Name = Field(description="The id of one item.")
    to: Name = Field(description="The id of the other one.")
    linked: bool = Field(default=True, description="false parts them.")


class Branch(_Input):
    """The person's personas, which are separate memories: list them, create one, or propose a switch. A
    switch happens at once only if the person allowed that; else they get a button."""

    action: Literal["list", "create", "switch"]
    name: Name | None = Field(default=None, description='The persona, one word such as "coding".')
    description: Annotated[str, Field(max_length=500)] = Field(
        default="", description="What a new persona is for, in the person's words."
    )

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if self.action != "list" and self.name is None:
            raise ValueError(f"{self.action} needs a name")
        return self


class HistoryOf(_Input):
    """How the person's memory came about: the newest changes, or everything that happened to one item."""

    item: Text | None = Field(default=None, description="The item's id, or at least 60 % of its text.")
    limit: int = Field(default=10, ge=1, le=50, description="How many changes at most.")


class Consolidate(_Input):
    """Tidy the person's memory now: merge duplicates, set aside what is outdated. Returns a report."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """Whose memory the tools work on, and from where. `origin` rests on the message being answered.

    `branch` is the persona that the place prescribes; None leaves it to the person's HEAD. `answered_as` is
    the one the answer is made for, wherever HEAD goes meanwhile. None: whatever HEAD is.
    """

    user_id: str
    in_dm: bool
    origin: Origin
    branch: str | None = None
    answered_as: str | None = None

    @property
    def subject(self) -> str:
        return user_subject(self.user_id)


Tidy = Callable[[str, str | None, Mapping[str, str]], Awaitable[Report]]
"""Consolidates a subject's branch now, given what the commit is to say of it.

Raises Refused, ModelError or MemoryFault.
"""

TalkSearch = Callable[[str, int], Awaitable[str]]
"""Searches what was said here for a query: at most so many messages, as a text. Raises MemoryFault."""


class MemoryTools:
    """The tools for one turn. `offers` are switches that were proposed, for the person to decide."""

    def __init__(
        self,
        memory: Memory,
        recall: Recall,
        clock: Clock,
        speaker: Speaker,
        *,
        choices: Choices | None = None,
        tidy: Tidy | None = None,
        tidy_wait_s: float = TIDY_WAIT_S,
        access: LastUsed | None = None,
        recall_limit: int = 5,
        meaning: Meaning | None = None,
        finder: Finder | None = None,
        talk: TalkSearch | None = None,
    ) -> None:
        self.offers: list[Offer] = []
        self._memory = memory
        self._recall = recall
        self._clock = clock
        self._speaker = speaker
        self._at = speaker.branch or speaker.answered_as
        self._choices = choices
        self._tidy = tidy
        self._tidy_wait_s = tidy_wait_s
        self._access = access
        self._recall_limit = recall_limit
        self._meaning = meaning
        self._finder = finder
        self._talk = talk

    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call; whatever goes wrong is a result the model can read."""
        entry = _TOOLS.get(_ALIASES.get(call.name, call.name)) or _UNOFFERED.get(call.name)
        if entry is None:
            return ToolResult(
                call.id, f"there is no tool {call.name!r}; use {', '.join(_TOOLS)}", failed=True
            )
        shape, work = entry
        try:
            self._check_wanted()
            return ToolResult(call.id, await work(self, shape.model_validate(dict(call.input))))
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, e['loc'])) or 'input'}: {e['msg'].removeprefix('Value error, ')}"
                for e in error.errors()
            )
            return ToolResult(call.id, f"{call.name} was not called correctly: {faults}", failed=True)
        except Refused as refusal:
            return ToolResult(call.id, str(refusal), failed=True)
        except MemoryFault as fault:
            log.warning("%s for %s failed: %s", call.name, self._speaker.subject, fault)
            return ToolResult(call.id, "memory can not be used right now; nothing was changed", failed=True)

    def _check_wanted(self) -> None:
        """Raise Refused when the person opted out, or had all erased, while they were answered."""
        speaker = self._speaker
        if self._choices is not None and self._choices.opted_out(speaker.user_id):
            raise Refused("the person wants no memory; do without")
        if speaker.origin.said_at <= self._memory.erased_at(speaker.subject):
            raise Refused("the person had their memory erased meanwhile; do without")

    # ------------------------------------------------------------------ looking

    async def _searched(self, wanted: Search) -> str:
        """What memory has, and where talk is archived, what was said, apart from it."""
        items = await self._search(wanted)
        narrowed = (wanted.scope, wanted.subject) != (None, None) or wanted.category in ("core", "knowledge")
        if self._talk is None or narrowed:
            return items
        try:
            said = await self._talk(wanted.query, wanted.limit or 2 * self._recall_limit)
        except MemoryFault as fault:
            log.warning("what was said can not be searched: %s", fault)
            said = TALK_NOT_SEARCHED
        return f"{items}\n\n{said}" if said else items

    async def _search(self, wanted: Search) -> str:
        view = await self._view()
        everything = self._visible(view.active())
        items = [item for item in everything if _fits(item, wanted)]
        if not items:
            return "No item fits." if everything else "Nothing is remembered of this person yet."
        limit = wanted.limit or 2 * self._recall_limit
        found = await self._found(wanted.query, items, limit)
        head = [] if found else ["No item has these words. The newest items, should one of them be meant:"]
        chosen = found or sorted(items, key=by_newest)[:limit]
        linked = self._linked(view, chosen, wanted.depth)
        return "\n".join(
            [
                *head,
                *(f"{durable_line(item)} [{item.id}]" for item in chosen),
                *(f"{durable_line(item)} [{item.id}] (linked)" for item in linked[:limit]),
            ]
        )

    async def _recalled(self, wanted: Remembered) -> str:
        view, limit = await self._view(), wanted.limit or self._recall_limit
        everything = self._visible(view.active())
        items = [item for item in everything if _fits(item, wanted)]
        found = await self._found(wanted.query, items, limit)
        linked = self._linked(view, found, wanted.depth)
        return memory_block([*found, *linked[:limit]], names(everything)) or NOTHING_FITS

    async def _found(self, text: str, items: Sequence[Item], limit: int) -> list[Item]:
        """The items that a text finds, best first; they count as used now."""
        query, subject, access = parse(text), self._speaker.subject, self._access
        signals = Signals(accessed=await access.load(subject)) if access is not None else NO_SIGNALS
        if self._meaning is not None:
            private = self._speaker.origin.private
            near = await self._meaning.cosines(subject, text, items, private=private)
            signals = replace(signals, cosines=near)
        if self._finder is not None:
            branch = await self._branch_name()
            pool = await self._finder.pool(subject, branch, items, query, cosines=signals.cosines)
            items, signals = pool.items, replace(signals, corpus=pool.corpus)
        hits = self._recall.rank(query, items, now_ms=self._clock(), signals=signals)
        # Links are followed when that is asked for, and as far as that.
        found = [hit.item for hit in hits if not hit.why.startswith(LINKED_WITH)][:limit]
        if access is not None:
            access.touch(subject, [item.id for item in found])
        return found

    def _linked(self, view: View, start: Sequence[Item], depth: int) -> list[Item]:
        """The visible, active items that `depth` links lead to, nearest first."""
        seen = {item.id for item in start}
        edge, found = list(start), []
        for _ in range(depth):
            near = sorted({link for item in edge for link in item.facets.links} - seen)
            seen.update(near)
            edge = self._visible([view.items[one] for one in near if one in view.items])
            edge = [item for item in edge if item.active]
            found += edge
        return found

    async def _history(self, wanted: HistoryOf) -> str:
        history = await self._memory.history(self._speaker.subject)
        branch = await self._branch_name()
        if wanted.item is None:
            return await asyncio.to_thread(
                shown.log, history, branch=branch, limit=wanted.limit, in_private=self._speaker.in_dm
            )
        item = self._the_one((await self._view()).items.values(), wanted.item)
        return await asyncio.to_thread(
            shown.why, history, item, link=str, branch=branch, in_private=self._speaker.in_dm
        )

    # ------------------------------------------------------------------ changing

    async def _store(self, wanted: Store) -> str:
        triple = (wanted.subject or "", wanted.predicate or "", wanted.object or "")
        text = wanted.text if wanted.text is not None else triple_text(*triple)
        facets = Facets(
            scope=collapse(wanted.scope) or "permanent",
            confidence=wanted.confidence,
            key=collapse(wanted.key) if wanted.key is not None else None,
            category=wanted.category,
            triple=None if wanted.text is not None else triple,
        )

        def add(draft: Draft) -> str:
            links = frozenset(self._the_one(draft.items.values(), one).id for one in wanted.links)
            item, done = draft.upsert(
                wanted.kind,
                text,
                self._speaker.origin,
                tags=wanted.tags,
                marked="private" if wanted.private else "normal",
                facets=replace(facets, links=links),
            )
            if "category" in wanted.model_fields_set and done in ("updated", "restored", "unchanged"):
                draft.classify(item, wanted.category, self._speaker.origin)
            if not may_show(item, in_dm=self._speaker.in_dm) and item.text != collapse(text):
                return f"{_SAID[done]}."  # the item meant is private, and this place is not
            where = (
                " It is private: used in DMs with this person only."
                if not may_show(item, in_dm=False)
                else ""
            )
            return f"{_SAID[done]}: {item.text} [{item.id}].{where}"

        return await self._change("memory_store", add)

    async def _update(self, wanted: Update) -> str:
        def update(draft: Draft) -> str:
            item = self._the_one(draft.items.values(), wanted.id)
            item, done = draft.upsert(
                item.kind, wanted.text, self._speaker.origin, given_id=item.id, marked=item.facets.sensitivity
            )
            return f"{_SAID[done]}: {item.text} [{item.id}]."

        return await self._change("memory_update", update)

    async def _forget(self, wanted: Forget) -> str:
        def forget(draft: Draft) -> str:
            items = [item for item in draft.items.values() if wanted.scope in (None, item.facets.scope)]
            if wanted.item is not None:
                found = [self._the_one(items, wanted.item)]
            else:
                found = [item for item in self._visible(items) if _named(item, wanted)]
            if not found:
                raise Refused(f"nothing matches {_name_of(wanted)}; memory_search shows what there is")
            for item in found:
                draft.remove(item, replace(self._speaker.origin, author="stated"))
            return "\n".join(f"Forgotten: {item.text} [{item.id}]." for item in found)

        return await self._change("memory_forget", forget)

    async def _link(self, wanted: Link) -> str:
        def link(draft: Draft) -> str:
            one, other = (self._the_one(draft.items.values(), name) for name in (wanted.item, wanted.to))
            done = draft.link(one, other, self._speaker.origin, on=wanted.linked)
            word = "linked" if wanted.linked else "parted"
            return (
                f"They were {word} already." if done == "unchanged" else f"{one.id} and {other.id}: {word}."
            )

        return await self._change("memory_link", link)

    async def _consolidate(self, _wanted: Consolidate) -> str:
        if self._tidy is None:
            raise Refused("consolidation is switched off here")
        tidying = asyncio.ensure_future(
            self._tidy(self._speaker.subject, self._at, self._why("memory_consolidate"))
        )
        tidying.add_done_callback(lambda late: late.cancelled() or late.exception())
        done, _ = await asyncio.wait([tidying], timeout=self._tidy_wait_s)
        if not done:
            return "It takes a while; what comes of it is in the history afterwards (memory_history)."
        try:
            return tidying.result().text(in_private=self._speaker.in_dm)
        except ModelError as error:
            log.warning("consolidation for %s failed: %s", self._speaker.subject, error)
            raise Refused("the model that tidies did not answer; nothing was changed") from None

    # ------------------------------------------------------------------ personas

    async def _branch(self, wanted: Branch) -> str:
        speaker = self._speaker
        branches = await self._memory.branches(speaker.subject)
        if wanted.action == "list":
            return shown.branches(branches, {}, in_private=speaker.in_dm)
        name = wanted.name or ""
        if wanted.action == "create":
            start = self._at if self._at is None or self._at in branches.all else MAIN
            origin = speaker.origin
            secret = sensitivity(
                "fact",
                wanted.description,
                learned_privately=origin.private,
                marked="normal",
                rule=origin.dm_privacy,
            )
            made = await verbs.create_branch(
                self._memory,
                speaker.subject,
                name,
                wanted.description,
                start=start,
                **self._why("memory_branch"),
                **({"private": True} if secret != "normal" and wanted.description else {}),
            )
            new = (made.all.keys() - branches.all.keys()).pop()
            return f"Created {new}. The current persona is still {speaker.branch or made.current}."
        to = branches.named(name).name
        if speaker.branch is not None:
            raise Refused(f"this place always uses the persona {speaker.branch!r}; elsewhere they can switch")
        if to == branches.current:
            return f"{to} is the current persona already."
        if self._choices is not None and self._choices.auto_switch(speaker.user_id):
            said_at = speaker.origin.said_at
            await verbs.switch(
                self._memory, speaker.subject, to, said_at=said_at, **self._why("memory_branch")
            )
            self._at = to
            return f"Switched to {to}; what you were given belongs to {branches.current}."
        self.offers = [Offer(speaker.user_id, to)]
        return f"Proposed. The person gets a button to switch to {to}; nothing has changed yet."

    # ------------------------------------------------------------------ shared

    def _why(self, tool: str) -> dict[str, str]:
        return {"by": tool, "message": str(self._speaker.origin.source)}

    async def _change(self, tool: str, wish: Callable[[Draft], str]) -> str:
        return await self._memory.change(
            self._speaker.subject,
            f"{tool} during a talk",
            wish,
            branch=self._at,
            begin=self._speaker.branch is not None,
            **self._why(tool),
        )

    async def _view(self) -> View:
        return await self._memory.view(self._speaker.subject, self._at)

    async def _branch_name(self) -> str:
        return self._at or (await self._memory.branches(self._speaker.subject)).current

    def _visible(self, items: Iterable[Item]) -> list[Item]:
        return [item for item in items if may_show(item, in_dm=self._speaker.in_dm)]

    def _the_one(self, items: Iterable[Item], wanted: str) -> Item:
        """The one visible item that is meant. Raises Refused when there is none, or more than one."""
        found = find(self._visible(items), wanted)
        if not found:
            raise Refused(f"no item matches {wanted!r}; memory_search shows items with their ids")
        if len(found) > 1:
            names = "; ".join(f"{item.text} [{item.id}]" for item in found[:10])
            raise Refused(f"{wanted!r} matches {len(found)} items, name one by its id: {names}")
        return found[0]


def _fits(item: Item, wanted: Search) -> bool:
    facets = item.facets
    return (
        wanted.scope in (None, facets.scope)
        and wanted.category in (None, facets.category)
        and (wanted.subject is None or normalise(wanted.subject) == normalise(_subject(item)))
    )


def _subject(item: Item) -> str:
    return item.facets.triple[0] if item.facets.triple is not None else "user"


def _named(item: Item, wanted: Forget) -> bool:
    if wanted.key is not None:
        return item.facets.key == collapse(wanted.key)
    if item.facets.triple is None:
        return False
    asked = (wanted.subject, wanted.predicate, wanted.object)
    pairs = zip(asked, item.facets.triple, strict=True)
    return all(one is None or normalise(one) == normalise(other) for one, other in pairs)


def _name_of(wanted: Forget) -> str:
    if wanted.key is not None:
        return f"the key {wanted.key!r}"
    return repr(" ".join(filter(None, (wanted.subject, wanted.predicate, wanted.object))))


_SAID: Mapping[str, str] = {
    "added": "Remembered",
    "updated": "Updated",
    "restored": "Remembered again",
    "unchanged": "Already remembered",
    "ignored": "Not changed, the person has said otherwise since",
    "conflict": (
        "Not changed, since the person set this with a command; the contradiction is noted, and the person "
        "is asked to settle it"
    ),
}

_Work = Callable[[MemoryTools, "_Input"], Awaitable[str]]
_TOOLS: Mapping[str, tuple[type[_Input], _Work]] = {
    "memory_search": (Search, MemoryTools._searched),  # type: ignore[dict-item]
    "memory_store": (Store, MemoryTools._store),  # type: ignore[dict-item]
    "memory_update": (Update, MemoryTools._update),  # type: ignore[dict-item]
    "memory_forget": (Forget, MemoryTools._forget),  # type: ignore[dict-item]
    "memory_link": (Link, MemoryTools._link),  # type: ignore[dict-item]
    "memory_branch": (Branch, MemoryTools._branch),  # type: ignore[dict-item]
    "memory_history": (HistoryOf, MemoryTools._history),  # type: ignore[dict-item]
    "memory_consolidate": (Consolidate, MemoryTools._consolidate),  # type: ignore[dict-item]
}
_ALIASES: Mapping[str, str] = {"memory_add": "memory_store"}
"""Other names under which models know these tools."""
_UNOFFERED: Mapping[str, tuple[type[_Input], _Work]] = {
    "memory_recall": (Remembered, MemoryTools._recalled),  # type: ignore[dict-item]
}
"""Tools that models know from elsewhere and may call; they are not told of them."""

SPECS: tuple[ToolSpec, ...] = tuple(
    ToolSpec(name, " ".join((shape.__doc__ or "").split()), shape.model_json_schema())
    for name, (shape, _) in _TOOLS.items()
)
"""What the model is told of the tools."""
