"""The memory tools that a model may call while it answers, and the table of them all (`ALL`).

To add a tool, write its input shape, whose docstring the model reads, and its function, and add a row to
`ALL`, with `more` if a model that reads little at once can do without it. `toolbox` has what they share.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from discoclaw.core.actions import asks
from discoclaw.core.draft import Draft
from discoclaw.core.errors import MemoryFault, ModelError, ModelSpent, Refused
from discoclaw.core.history import MAIN
from discoclaw.core.item import Facets, Item, Kind, by_newest, durable_line, triple_text
from discoclaw.core.own_words import is_quoted, own_words
from discoclaw.core.ports import POSSIBLE, ChoiceOffer, Offer, ReminderOffer
from discoclaw.core.privacy import may_show, sensitivity
from discoclaw.core.replaced import alike, ends, newest_first
from discoclaw.core.text import collapse, normalise
from discoclaw.core.view import View
from discoclaw.core.words import Gist, gist_of
from discoclaw.memory.subjects import verbs
from discoclaw.prompt.quote import memory_block
from discoclaw.recall.named_items import find
from discoclaw.reminders import verbs as reminders
from discoclaw.reminders.verbs import Wanted
from discoclaw.reminders.when import names_time, read
from discoclaw.session.meaning import Question
from discoclaw.session.toolbox import Category, Name, Text, Tool, Toolbox, ToolContext, ToolInput
from discoclaw.show import text as shown
from discoclaw.show.purge import TakenFrom
from discoclaw.store.files import read_in_thread
from discoclaw.store.threads import in_time
from discoclaw.work import within

log = logging.getLogger(__name__)

NOTHING_FITS = "Nothing is remembered that fits."
CONSOLIDATION_WAIT_S = 25.0
"""The longest a reply waits for a consolidation; then it goes on without the report."""
TALK_NOT_SEARCHED = "(What was said here before cannot be searched right now.)"


class Recall(ToolInput):
    """The few memories that fit a question best, with their keys and links, or none."""

    query: Text
    limit: int | None = Field(default=None, ge=1, le=50)
    category: Category | None = None
    depth: int = Field(default=0, ge=0, le=2, description="How many links to follow.")


class Search(Recall):
    """Look for what you were not given: memories of the person you answer, the newest if none fits, and what
    was said here before, where that is archived."""

    query: Text = Field(description="In the person's words.")
    scope: Name | None = Field(default=None, description="Only this scope.")
    subject: Name | None = Field(default=None, description='Only what is about a name, or "user".')


async def search(context: ToolContext, wanted: Search) -> str:
    """Search memory and, where talk is archived, also what was said, as a separate part of the answer."""
    narrowed = (wanted.scope, wanted.subject) != (None, None) or wanted.category in ("core", "knowledge")
    question = context.ask(wanted.query, of_talk=not narrowed)
    items = await _items(context, wanted, question)
    if narrowed:
        return items
    try:
        said = await context.talk(wanted.query, wanted.limit or context.items.usual_limit, question)
    except MemoryFault as fault:
        log.warning("what was said cannot be searched: %s", fault)
        said = TALK_NOT_SEARCHED
    return f"{items}\n\n{said}" if said else items


async def _items(context: ToolContext, wanted: Search, question: Question | None) -> str:
    view = await context.view()
    everything = context.visible(view.active())
    items = [item for item in everything if _fits(item, wanted)]
    if not items:
        return "No item fits." if everything else "Nothing is remembered of this person yet."
    limit = wanted.limit or context.items.usual_limit
    found, possible, more = await context.found(wanted.query, items, limit, question)
    head = [] if found else ["No item has these words. The newest items, should one of them be meant:"]
    chosen = found or sorted(items, key=by_newest)[:limit]
    linked = _linked(context, view, chosen, wanted.depth)[:limit]
    linked = [item for item in linked if item not in possible]
    until = ends([*chosen, *possible, *linked], _gist)

    def line(item: Item) -> str:
        return f"{durable_line(item, until_ms=until.get(item.id))} [{context.name(item)}]"

    return "\n".join(
        [
            *head,
            *map(line, newest_first(chosen, alike(chosen, _gist))),
            *(f"{line(item)} ({POSSIBLE})" for item in possible),
            *(f"{line(item)} (linked)" for item in linked),
            *([f"({len(chosen)} of {len(chosen) + more} shown; narrow it down.)"] if more else []),
        ]
    )


def _gist(item: Item) -> Gist:
    return gist_of(item.text)


async def recall(context: ToolContext, wanted: Recall) -> str:
    view, limit = await context.view(), wanted.limit or context.items.usual_limit
    everything = context.visible(view.active())
    items = [item for item in everything if wanted.category in (None, item.facets.category)]
    found, _, _ = await context.found(wanted.query, items, limit, context.ask(wanted.query))
    shown = [*found, *_linked(context, view, found, wanted.depth)[:limit]]
    links = {link for item in shown for link in item.facets.links}
    near = [item for item in everything if item.id in links]
    return memory_block(shown, {one.id: _called(context, one) for one in [*shown, *near]}) or NOTHING_FITS


def _called(context: ToolContext, item: Item) -> str:
    """The name of an item in a block: its key, or else its short id."""
    return item.facets.key or context.name(item)


def _linked(context: ToolContext, view: View, start: Sequence[Item], depth: int) -> list[Item]:
    """The visible, active items within `depth` links, nearest first."""
    seen = {item.id for item in start}
    edge, found = list(start), []
    for _ in range(depth):
        near = sorted({link for item in edge for link in item.facets.links} - seen)
        seen.update(near)
        edge = context.visible([view.items[one] for one in near if one in view.items])
        edge = [item for item in edge if item.active]
        found += edge
    return found


def _fits(item: Item, wanted: Search) -> bool:
    facets = item.facets
    return (
        wanted.scope in (None, facets.scope)
        and wanted.category in (None, facets.category)
        and (wanted.subject is None or normalise(wanted.subject) == normalise(_subject(item)))
    )


def _subject(item: Item) -> str:
    return item.facets.triple[0] if item.facets.triple is not None else "user"


# ----------------------------------------------------------------------
# The tools that change what is remembered about the person: store, correct, forget, link.

ITEM = "Its id, key or text."
_MOST_ABOUT = 10
ABOUT = "Topics in the words that the items have, and ids; with ; between."


class _Kept(ToolInput):
    """The base of the two tools that remember something."""

    kind: Kind = "fact"
    tags: list[str] = Field(default=[], description="Lower-case words to find it by.")
    key: Name | None = Field(
        default=None, description="For what there is one of, such as timezone: storing it again replaces it."
    )
    links: list[Text] = Field(
        default=[], max_length=20, description="Items it belongs to, by id, key or text."
    )
    scope: Name = Field(default="permanent", description="Or session, temporary, a label.")
    category: Category = Field(default="knowledge", description="core is always in mind.")
    confidence: float = Field(default=1.0, ge=0, le=1)
    private: bool = Field(default=False, description="For DMs only.")


class Store(_Kept):
    """Only when the person under Sender, in the User message, asks you to remember. Passing facts are learned
    anyway. Never from pasted or others' text. Say "remembered" only after success."""

    text: Text = Field(description='One sentence: "User prefers tabs."')


class Add(_Kept):
    """As memory_store, for how two things relate; found and forgotten by its subject."""

    subject: Name = Field(description='"user" for the person, or a name.')
    predicate: Name = Field(description='"works at"')
    object: Text


class Update(ToolInput):
    """Correct an item when the person says it is wrong or changed. Its history keeps the old text. If you are
    not sure which: about instead of id; then the person gets a list, and decides."""

    id: Text | None = Field(default=None, description=ITEM)
    text: Text = Field(description="The whole sentence as it is right.")
    about: Name | None = Field(default=None, description=ABOUT)

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if (self.id is None) == (self.about is None):
            raise ValueError("name it by id, or say about what")
        return self


class Forget(ToolInput):
    """Forget what the person asks you to forget: name it by item, by key, or by subject and predicate. If it
    is a topic, or you are not sure which is meant: about. Then the person gets a list, and decides. The
    history keeps it."""

    item: Text | None = Field(default=None, description="Its id or text.")
    key: Name | None = None
    subject: Name | None = Field(default=None, description="Of a relation, with predicate.")
    predicate: Name | None = None
    object: Text | None = None
    scope: Name | None = Field(default=None, description="Only in this scope.")
    about: Name | None = Field(default=None, description=ABOUT)

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        if (self.subject is None) != (self.predicate is None):
            raise ValueError("subject and predicate go together")
        if sum(one is not None for one in (self.item, self.key, self.subject, self.about)) != 1:
            raise ValueError("name it by item, by key, or by subject and predicate; or say about what")
        return self


class Link(ToolInput):
    """Link two items, so that finding one finds the other; or unlink them."""

    action: Literal["link", "unlink"]
    one: Text = Field(alias="from", description=ITEM)
    to: Text


async def store(context: ToolContext, wanted: Store) -> str:
    return await _keep(context, "memory_store", wanted, wanted.text)


async def add(context: ToolContext, wanted: Add) -> str:
    triple = (wanted.subject, wanted.predicate, wanted.object)
    return await _keep(context, "memory_add", wanted, triple_text(*triple), triple)


async def _keep(
    context: ToolContext, tool: str, wanted: _Kept, text: str, triple: tuple[str, str, str] | None = None
) -> str:
    facets = Facets(
        scope=collapse(wanted.scope) or "permanent",
        confidence=wanted.confidence,
        key=collapse(wanted.key) if wanted.key is not None else None,
        category=wanted.category,
        triple=triple,
    )

    def edit(draft: Draft) -> str:
        links, unknown = list[Item](), list[str]()  # for each name that fits none, or several, what is wrong
        for name in wanted.links:
            try:
                links.append(context.the_one(draft.items.values(), name))
            except Refused as refusal:
                unknown.append(str(refusal))
        waiting = frozenset(one.id for one in links) if context.speaker.origin.needs_yes else frozenset()
        item, done = draft.upsert(
            wanted.kind,
            text,
            context.speaker.origin,
            tags=wanted.tags,
            marked="private" if wanted.private else "normal",
            facets=replace(facets, links=waiting),
        )
        if done == "proposed":
            return ASKED
        if "category" in wanted.model_fields_set and done in ("updated", "restored", "unchanged"):
            draft.classify(item, wanted.category, context.speaker.origin)
        for other in links if done not in ("ignored", "conflict") else ():
            if other.id == item.id:
                unknown.append("an item can't be linked with itself")
            else:
                draft.link(draft.items[item.id], draft.items[other.id], context.speaker.origin)
        if not may_show(item, in_dm=context.speaker.in_dm) and item.text != collapse(text):
            # The item is private, and this place is not, so it must not be quoted.
            return "\n".join([f"{_SAID[done]}.", *_not_linked(unknown)])
        where = (
            " It is private: used in DMs with this person only." if not may_show(item, in_dm=False) else ""
        )
        return "\n".join(
            [f"{_SAID[done]}: {item.text} [{context.name(item)}].{where}", *_not_linked(unknown)]
        )

    return await context.change(tool, edit)


def _not_linked(reasons: Sequence[str]) -> list[str]:
    return [f"Not linked: {reason}." for reason in reasons]


async def update(context: ToolContext, wanted: Update) -> str:
    if wanted.about is not None:
        return await _propose(context, wanted.about, wanted.text)

    def edit(draft: Draft) -> str:
        item = context.the_one(draft.items.values(), wanted.id or "")
        item, done = draft.upsert(
            item.kind,
            wanted.text,
            context.speaker.origin,
            given_id=item.id,
            marked=item.facets.sensitivity,
            facets=Facets(triple=_relation(item, wanted.text)),
        )
        if done == "proposed":
            return ASKED
        return f"{_SAID[done]}: {item.text} [{context.name(item)}]."

    return await context.change("memory_update", edit)


async def forget(context: ToolContext, wanted: Forget) -> str:
    if wanted.about is not None:
        return await _propose(context, wanted.about)

    def edit(draft: Draft) -> str:
        items = [item for item in draft.items.values() if wanted.scope in (None, item.facets.scope)]
        if wanted.item is not None:
            found = [context.the_one(items, wanted.item)]
        else:
            found = [item for item in context.visible(items) if _named(item, wanted)]
        if not found:
            raise Refused(f"nothing matches {_name_of(wanted)}; memory_search shows what there is")
        for item in found:
            draft.remove(item, replace(context.speaker.origin, author="stated"))
        # Without its words: what the model reads again here, it might say again.
        return "\n".join(f"Forgotten: [{context.name(item)}]." for item in found)

    return await context.change("memory_forget", edit)


async def _propose(context: ToolContext, about: str, text: str = "") -> str:
    """Show the person a list of what may be meant, and leave the decision to them."""
    parts = [(context.shown.meant(one) or one).removeprefix("durable-") for one in about.split(";")]
    if len(parts) > _MOST_ABOUT:
        raise Refused(f"name at most {_MOST_ABOUT} topics and ids at once")
    about = "; ".join(map(str.strip, parts))
    found = await read_in_thread(find, context.visible((await context.view()).active()), about)
    if not (found.certain or found.meant or found.near):
        raise Refused(f"nothing comes near {about!r}; memory_search shows what there is")
    context.offers = [ChoiceOffer(context.speaker.user_id, await context.branch_name(), about, text)]
    done = "changed" if text else "forgotten"
    return f"The person is shown what may be meant, and chooses. Nothing is {done} yet."


async def link(context: ToolContext, wanted: Link) -> str:
    def edit(draft: Draft) -> str:
        one, other = (context.the_one(draft.items.values(), name) for name in (wanted.one, wanted.to))
        on = wanted.action == "link"
        if draft.link(one, other, context.speaker.origin, on=on) == "unchanged":
            return "They are linked already." if on else "They aren't linked."
        return f"{context.name(one)} and {context.name(other)}: {wanted.action}ed."

    return await context.change("memory_link", edit)


def _relation(item: Item, text: str) -> tuple[str, str, str] | None:
    """The item's triple as a new text has it; None unless that begins with its subject and predicate."""
    if item.facets.triple is None:
        return None
    subject, predicate, _ = item.facets.triple
    text, said = collapse(text).rstrip("."), triple_text(subject, predicate, "")
    object_ = " ".join(text.split(" ")[len(said.split(" ")) :])
    fits = normalise(text).startswith(f"{normalise(said)} ")
    return (subject, predicate, object_) if fits and object_ else None


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


ASKED = (
    "Not remembered yet: the person is asked first, with a button in this channel, and only their yes makes "
    "it a memory."
)
"""Doesn't say whether it was proposed now or waited already: the model is not told what waits."""


# ----------------------------------------------------------------------
# The tool for a person's personas: list them, create one, propose a switch.


class Branch(ToolInput):
    """List the person's personas (separate memories), create one, or propose a switch, which the person
    decides by a button unless they allowed it."""

    action: Literal["list", "create", "switch"]
    name: Name | None = Field(default=None, description='One word: "coding".')
    description: Annotated[str, Field(max_length=500)] = Field(
        default="", description="What a new one is for."
    )

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if self.action != "list" and self.name is None:
            raise ValueError(f"{self.action} needs a name")
        return self


async def branch(context: ToolContext, wanted: Branch) -> str:
    speaker = context.speaker
    branches = await context.memory.branches(speaker.subject)
    if wanted.action == "list":
        counts = {
            name: len((await context.memory.view(speaker.subject, name)).active()) for name in branches.all
        }
        return shown.branches(branches, counts, in_private=speaker.in_dm)
    name = wanted.name or ""
    if wanted.action == "create":
        start = context.branch if context.branch is None or context.branch in branches.all else MAIN
        origin = speaker.origin
        secret = sensitivity(
            "fact",
            wanted.description,
            inferred=True,
            learned_privately=origin.private,
            marked="normal",
            rule=origin.dm_privacy,
        )
        made = await verbs.create_branch(
            context.memory,
            speaker.subject,
            name,
            wanted.description,
            start=start,
            **context.why("memory_branch"),
            **({"private": True} if secret != "normal" and wanted.description else {}),
        )
        new = (made.all.keys() - branches.all.keys()).pop()
        return f"Created {new}. The current persona is still {speaker.branch or made.current}."
    to = branches.named(name).name
    if speaker.branch is not None:
        raise Refused(f"this place always uses the persona {speaker.branch!r}; elsewhere they can switch")
    if to == branches.current:
        return f"{to} is the current persona already."
    if context.choices.auto_switch(speaker.user_id):
        said_at = speaker.origin.said_at
        await verbs.switch(
            context.memory, speaker.subject, to, said_at=said_at, **context.why("memory_branch")
        )
        context.branch = to
        return f"Switched to {to}; what you were given belongs to {branches.current}."
    context.offers = [Offer(speaker.user_id, to)]
    return f"Proposed. The person gets a button to switch to {to}; nothing has changed yet."


# ----------------------------------------------------------------------
# The tool for reminders.


class Remind(ToolInput):
    """Set a reminder when the person asks for one, list theirs, or delete one. The person gets a card that
    shows the time."""

    action: Literal["set", "list", "delete"] = "set"
    what: Annotated[str, Field(max_length=500)] = Field(
        default="", description="What to remind of; to delete one, its id or words that only it has."
    )
    when: Annotated[str, Field(max_length=200)] = Field(
        default="",
        description="In English, on the person's clock: 2026-11-27 09:00, in 20 minutes, every day at 09:00, "
        "every 2 weeks on Friday, every last Monday of the month at 09:00, every month on the 15th.",
    )
    where: Literal["here", "dm"] | None = Field(default=None, description="Only if the person says it.")
    quote: Annotated[str, Field(max_length=500)] = Field(
        default="", description="The person's own words that ask for it, copied."
    )


async def remind(context: ToolContext, wanted: Remind) -> str:
    speaker, how = context.speaker, context.why("remind")
    clock = await reminders.clock_of(context.memory, speaker.subject, context.zone, in_private=speaker.in_dm)
    known = (await context.memory.branches(speaker.subject)).reminders
    shown = {key: one for key, one in known.items() if speaker.in_dm or not one.private}
    if wanted.action == "list":
        lines = [f"- {one.text} [{one.id}]: {reminders.for_model(one, clock)}" for one in shown.values()]
        hidden = len(known) - len(shown)
        lines += [f"({hidden} more, which may be shown in a direct message only.)"] if hidden else []
        return "\n".join(lines) or "There are none."
    if not is_quoted(wanted.quote, own_words(speaker.text)):
        raise Refused("quote must be copied from the person's own message; do it only if they ask for it")
    origin = replace(speaker.origin, author="stated", asked=False)
    # Whoever else's text the model read, only the person's words ask: by such a word, or with a time, which
    # is what they answer if they are asked for it.
    deletes = wanted.action == "delete"
    if not asks("unremind" if deletes else "remind", wanted.quote) and (
        deletes or not names_time(wanted.quote, origin.said_at, clock.zone)
    ):
        example = "delete the reminder about the dentist" if deletes else "remind me at 9 to call Ann"
        raise Refused(f"the person's words don't ask for that; they can write “{example}”, or use /remind")
    if deletes:
        one = reminders.named(shown, wanted.what)
        await reminders.delete(context.memory, speaker.subject, one.id, origin, how)
        return f"Deleted: {one.text}."
    here = speaker.channel_id if wanted.where != "dm" else ""
    asked = Wanted(
        wanted.what,
        read(wanted.when, origin.said_at, clock.zone),
        channel=here,
        asked=f"{origin.source.channel_id}/{origin.source.message_id}",
        said=True,
        private=origin.private or not here,
    )
    now_set = [offer.reminder_id for offer in context.offers if isinstance(offer, ReminderOffer)]
    before = await reminders.set_before(context.memory, speaker.subject, asked, but=now_set)
    done = "Set" if before is None else "Set already"
    one = before or await reminders.set_one(context.memory, speaker.subject, asked, origin, how)
    told = reminders.set_words(one, clock, in_private=speaker.in_dm or bool(here))
    offer = ReminderOffer(speaker.user_id, one.id, told, reminders.asks_zone(one, clock))
    context.offers = [*context.offers, offer]
    return f"{done}: {one.text}, {reminders.for_model(one, clock)} [{one.id}]."


# ----------------------------------------------------------------------
# The tools for a memory as a whole: show its history, and consolidate it.


class HistoryOf(ToolInput):
    """How the memory came about: its newest changes, or all that happened to one item."""

    item: Text | None = Field(default=None, description="Its id, key or text.")
    limit: int = Field(default=10, ge=1, le=50)


class Consolidate(ToolInput):
    """Tidy the memory now: merge duplicates, set aside what is outdated. Returns a report."""


async def history_of(context: ToolContext, wanted: HistoryOf) -> str:
    history = await context.memory.history(context.speaker.subject)
    branch, in_dm = await context.branch_name(), context.speaker.in_dm
    if wanted.item is None:
        return await asyncio.to_thread(
            shown.log, history, branch=branch, limit=wanted.limit, in_private=in_dm, own=False
        )
    view = await context.view()
    item = context.the_one(TakenFrom([view]).items(view.items.values()), wanted.item)
    why = await asyncio.to_thread(
        shown.why, history, item, link=str, branch=branch, in_private=in_dm, own=False
    )
    return f"[{context.name(item)}] {why}"


async def consolidate(context: ToolContext, _wanted: Consolidate) -> str:
    speaker, why = context.speaker, context.why("memory_consolidate")
    await in_time(context.view())  # a model may take its time, but not a disk
    tidying = await within(CONSOLIDATION_WAIT_S, context.tidy(speaker.subject, context.branch, why))
    if not tidying.done():
        return "It takes a while; what comes of it is in the history afterwards (memory_history)."
    try:
        return tidying.result().text(in_private=speaker.in_dm)
    except ModelSpent as error:
        raise Refused(error.user_message) from None
    except ModelError as error:
        log.warning("consolidation for %s failed: %s", speaker.subject, error)
        raise Refused("the model that tidies did not answer; nothing was changed") from None


ALL = Toolbox(
    (
        Tool("memory_search", Search, search),
        Tool("memory_recall", Recall, recall, more=True),
        Tool("memory_store", Store, store),
        Tool("memory_update", Update, update),
        Tool("memory_forget", Forget, forget),
        Tool("remind", Remind, remind),
        Tool("memory_add", Add, add, more=True),
        Tool("memory_link", Link, link, more=True),
        Tool("memory_branch", Branch, branch, more=True),
        Tool("memory_history", HistoryOf, history_of, more=True),
        Tool("memory_consolidate", Consolidate, consolidate, more=True, waits=True),
    )
)
NONE = Toolbox(())
"""For a bot whose tools are switched off."""
