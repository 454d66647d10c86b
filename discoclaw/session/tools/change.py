"""The tools that change what is remembered about the person: store, correct, forget, link."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self

from pydantic import Field, model_validator

from discoclaw.core.draft import Draft
from discoclaw.core.errors import Refused
from discoclaw.core.item import Facets, Item, Kind, triple_text
from discoclaw.core.privacy import may_show
from discoclaw.core.text import collapse, normalise
from discoclaw.session.tools.base import Category, Name, Text, Tool, ToolContext, ToolInput

NAMED = "the id, the key, or at least 60 % of the text."


class _Kept(ToolInput):
    """What the two tools that remember something share."""

    kind: Kind = Field(default="fact", description="What kind of memory it is.")
    tags: list[str] = Field(default=[], description="Lower-case words by which it will be named.")
    key: Name | None = Field(
        default=None, description="A name for a fact of which there is one: storing it again replaces it."
    )
    links: list[Text] = Field(default=[], max_length=20, description=f"Items it belongs to: {NAMED}")
    scope: Name = Field(default="permanent", description="permanent, session, temporary, or a free label.")
    category: Category = Field(default="knowledge", description="core is always kept in mind.")
    confidence: float = Field(default=1.0, ge=0, le=1, description="How sure the person seems.")
    private: bool = Field(default=False, description="Keep it between you: use it in DMs only.")


class Store(_Kept):
    """Remember something the person asked you to remember, as one short sentence in the third person."""

    text: Text = Field(description='For example "User prefers tabs over spaces."')


class Add(_Kept):
    """Remember how two things relate, such as who works where, as subject, predicate and object. Unlike a
    sentence, memory_search and memory_forget find it by its subject."""

    subject: Name = Field(description='"user" for the person, or a name.')
    predicate: Name = Field(description='For example "prefers backend".')
    object: Text = Field(description='For example "Python".')


class Update(ToolInput):
    """Correct something you remember of the person. What it said before stays in the history."""

    id: Text = Field(description=f"The item: {NAMED}")
    text: Text = Field(description="The sentence as it is right now.")


class Forget(ToolInput):
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


class Link(ToolInput):
    """Link two items that belong together, so that finding one finds the other; or unlink them."""

    action: Literal["link", "unlink"]
    one: Text = Field(alias="from", description=f"One item: {NAMED}")
    to: Text = Field(description="The other one, named in the same way.")


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
        links, unknown = _linked(context, draft, wanted.links)
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
        return "\n".join([f"{_SAID[done]}: {item.text} [{item.id}].{where}", *_not_linked(unknown)])

    return await context.change(tool, edit)


def _linked(context: ToolContext, draft: Draft, names: Sequence[str]) -> tuple[list[Item], list[str]]:
    """The items that are named, and for each name that fits none, or several, what is wrong with it."""
    items, wrong = [], []
    for name in names:
        try:
            items.append(context.the_one(draft.items.values(), name))
        except Refused as refusal:
            wrong.append(str(refusal))
    return items, wrong


def _not_linked(reasons: Sequence[str]) -> list[str]:
    return [f"Not linked: {reason}." for reason in reasons]


async def update(context: ToolContext, wanted: Update) -> str:
    def edit(draft: Draft) -> str:
        item = context.the_one(draft.items.values(), wanted.id)
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
        return f"{_SAID[done]}: {item.text} [{item.id}]."

    return await context.change("memory_update", edit)


async def forget(context: ToolContext, wanted: Forget) -> str:
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
        return "\n".join(f"Forgotten: [{item.id}]." for item in found)

    return await context.change("memory_forget", edit)


async def link(context: ToolContext, wanted: Link) -> str:
    def edit(draft: Draft) -> str:
        one, other = (context.the_one(draft.items.values(), name) for name in (wanted.one, wanted.to))
        on = wanted.action == "link"
        if draft.link(one, other, context.speaker.origin, on=on) == "unchanged":
            return "They are linked already." if on else "They aren't linked."
        return f"{one.id} and {other.id}: {wanted.action}ed."

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
"""The same whether it was proposed now or waited already: the model is not told what waits."""

TOOLS = (
    Tool("memory_store", Store, store),
    Tool("memory_add", Add, add),
    Tool("memory_update", Update, update),
    Tool("memory_forget", Forget, forget),
    Tool("memory_link", Link, link),
)
