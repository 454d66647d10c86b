"""What a small model may propose: the strict shapes of its JSON. A proposal, until `draft` accepts it.

The shape is DNAM's: {"upserts": [{id?, kind, text, tags, source}], "deprecations": [{id | matchText,
reason}]}, and an upsert may say key, links and category. Anything else, unknown
fields included, is refused as a whole and changes nothing. Consolidation has a shape of its own, of which
`consolidate` decides; a suggestion decides nothing.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

from discoclaw.core.item import Kind
from discoclaw.core.text import collapse


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _tidy_word(value: object) -> object:
    return collapse(value).lower() if isinstance(value, str) else value


class SourceRef(_Strict):
    """The message a proposal rests on."""

    type: Literal["discord", "manual"] = "discord"
    channelId: str = ""  # noqa: N815 - the schema's spelling
    messageId: str = ""  # noqa: N815 - the schema's spelling


class Upsert(_Strict):
    """Add an item, or change the one named by `id` or `key`.

    `links` name other items by id, by key or by their text, those of the same patch too. A `category` that
    is not said leaves an item where it is; a new one is knowledge.
    """

    id: str | None = None
    kind: Annotated[Kind, BeforeValidator(_tidy_word)]
    text: str
    tags: list[str] = []
    source: SourceRef | None = None
    sensitivity: Literal["normal", "private"] = "normal"
    key: str | None = None
    links: list[str] = []
    category: Annotated[Literal["core", "knowledge", "conversation"] | None, BeforeValidator(_tidy_word)] = (
        None
    )


class Deprecation(_Strict):
    """An item no longer holds: named by `id`, or by `matchText`, at least 60 % of its text."""

    id: str | None = None
    matchText: str | None = None  # noqa: N815 - the schema's spelling
    reason: str = ""


class Trait(_Strict):
    """How the assistant itself is to be, when its owner says so; `key` is a name of a word or two."""

    key: str
    text: str


class Patch(_Strict):
    """What extraction returns."""

    upserts: list[Upsert] = []
    deprecations: list[Deprecation] = []
    traits: list[Trait] = []
    """Of the assistant; taken from an owner's talk only."""


class Summary(_Strict):
    """What the rolling summary's loop returns: the summary, and what is new for the channel's own memory."""

    summary: str
    themes: list[str] = []
    decisions: list[str] = []


class Duplicate(_Strict):
    """Items that say the same: `keep` stays, `text` says what all of them say if `keep` alone does not."""

    keep: str
    drop: list[str]
    text: str | None = None


class Contradiction(_Strict):
    """Two items that can not both hold."""

    older: str
    newer: str
    reason: str = ""


class Outdated(_Strict):
    """An item whose time is over."""

    id: str
    reason: str = ""


class Consolidation(_Strict):
    """What consolidation returns. All items are named by id."""

    duplicates: list[Duplicate] = []
    contradictions: list[Contradiction] = []
    outdated: list[Outdated] = []


class Suggestion(_Strict):
    """How a small model would settle a conflict; the person decides."""

    how: Literal["keep_old", "use_new", "both_valid"]
    reason: str = ""
