"""Leaves out of a summary what people took back: of its messages, and of the model's answer. Pure."""

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from discoclaw.core.patch import Summary
from discoclaw.core.subject import person_of
from discoclaw.core.taken_back import Withdrawal, Words, terms_of
from discoclaw.loops.heard import Heard
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.memory.conversations.withdrawn import struck
from discoclaw.memory.erasing.cursor_files import people_of


def people_in(session_key: str, batch: Sequence[Heard], noted: Mapping[str, object]) -> set[str]:
    """The people (user ids) whose words a summary may have, or who were answered in it."""
    heard = {one.said.to_id if one.said.by_us else one.said.author_id for one in batch if not one.said.guest}
    return {*heard, *people_of(noted), person_of(session_key) or ""} - {""}


def covered(heard: Heard, taken: Sequence[Withdrawal]) -> bool:
    """Whether somebody took back what a message says."""
    return any(one.covers(heard.said, in_private=heard.place.private) for one in taken)


def without(
    answer: Summary, taken: Sequence[Withdrawal], batch: Sequence[Heard], previous: Rolling
) -> Summary:
    """An answer without what people took back, unless the words it was made from have that too."""
    apply = [one for one in taken if not (one.open_only and batch[0].place.private)]
    words, text = reduce(or_, (one.words for one in apply), Words()), answer.summary.strip()
    said = (
        terms_of("\n".join([previous.summary, *(one.said.text for one in batch)])) if words else frozenset()
    )
    themes, decisions = (
        [one for one in texts if not words.hold(one, said)] for texts in (answer.themes, answer.decisions)
    )
    kept = struck(text, words, said) if words.hold(text, said) else text
    return Summary(summary=kept, themes=themes, decisions=decisions)
