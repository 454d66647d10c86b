"""The strict JSON shapes in which a small model proposes changes. `draft` and `consolidate` decide on them.

Extraction's shape is DNAM's: {"upserts": [{id?, kind, text, tags, source}], "deprecations": [{id | matchText,
reason}]}, where an upsert may also have key, links and category. JSON of any other shape, including unknown
fields, is rejected as a whole and changes nothing: half of a misunderstood answer is worse than none. Only a
summary may also come as prose.
"""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from discoclaw.core.item import Kind
from discoclaw.core.prose import ProseShape, objects_in, summary_in
from discoclaw.core.text import collapse


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _tidy_word(value: object) -> object:
    return collapse(value).lower() if isinstance(value, str) else value


class SourceRef(_Strict):
    """The message that a proposal is based on."""

    type: Literal["discord", "manual"] = "discord"
    channelId: str = ""  # noqa: N815 - the schema's spelling
    messageId: str = ""  # noqa: N815 - the schema's spelling


class Upsert(_Strict):
    """Add an item, or change the one named by `id` or `key`.

    `links` name other items by id, key or text, including items of the same patch. Without a `category` an
    existing item keeps its own, and a new one is knowledge.
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
    """An item is no longer true. It is named by `id`, or by `matchText` with at least 60 % of its text."""

    id: str | None = None
    matchText: str | None = None  # noqa: N815 - the schema's spelling
    reason: str = ""


class Trait(_Strict):
    """How the bot itself should behave, as its owner said. `key` is a name of one or two words."""

    key: str
    text: str


class Patch(_Strict):
    """What extraction returns."""

    upserts: list[Upsert] = []
    deprecations: list[Deprecation] = []
    traits: list[Trait] = []
    """The bot's traits; used only if the messages are an owner's."""


class Summary(_Strict, ProseShape):
    """What the summary loop returns: the summary, and new themes and decisions for the channel's memory."""

    summary: str
    themes: list[str] = []
    decisions: list[str] = []

    @classmethod
    def from_prose(cls, text: str) -> Self | None:
        """The summary in prose, or in JSON with something around it.

        Themes and decisions become the channel's memory, so they count only from an object of exactly this
        shape.
        """
        for found in objects_in(text):
            try:
                return cls.model_validate(found, strict=True)
            except ValidationError:
                alone = found.get("summary")
                if isinstance(alone, str) and alone.strip():
                    return cls(summary=alone)
        plain = summary_in(text)
        return cls(summary=plain) if plain is not None else None


class Duplicate(_Strict):
    """Items that say the same. `keep` stays, with the merged `text` if its own would lose something."""

    keep: str
    drop: list[str]
    text: str | None = None


class Contradiction(_Strict):
    """Two items that cannot both be true."""

    older: str
    newer: str
    reason: str = ""


class Outdated(_Strict):
    """An item that is no longer true because time has passed."""

    id: str
    reason: str = ""


class Consolidation(_Strict):
    """What consolidation returns. All items are named by id."""

    duplicates: list[Duplicate] = []
    contradictions: list[Contradiction] = []
    outdated: list[Outdated] = []


class Suggestion(_Strict):
    """How a small model would settle a conflict. The person decides; this is only shown to them."""

    how: Literal["keep_old", "use_new", "both_valid"]
    reason: str = ""
