"""Leaves out of a summary what people took back: of its messages, and of the model's answer. Pure."""

from collections.abc import Iterable, Sequence

from discoclaw.core.patch import Summary
from discoclaw.core.subject import person_of
from discoclaw.core.taken_back import Withdrawal, terms_of
from discoclaw.loops.heard import Heard
from discoclaw.memory.conversations.rolling import Rolling
from discoclaw.memory.conversations.withdrawn import struck


def people_in(session_key: str, batch: Sequence[Heard], noted: Iterable[str]) -> set[str]:
    """The people (user ids) whose words a summary may have, or who were answered in it.

    `noted` are those of whom that is known already.
    """
    heard = {one.said.to_id if one.said.by_us else one.said.author_id for one in batch if not one.said.guest}
    return {*heard, *noted, person_of(session_key) or ""} - {""}


def covered(heard: Heard, taken: Sequence[Withdrawal]) -> bool:
    """Whether somebody took back what a message says."""
    return any(one.covers(heard.said, in_private=heard.place.hidden) for one in taken)


def without(
    answer: Summary, taken: Sequence[Withdrawal], batch: Sequence[Heard], previous: Rolling
) -> Summary:
    """An answer without what people took back, unless the words it was made from have that too.

    Other people's talk may share a word with it, so at least half of the words are asked for.
    """
    apply = [one.words for one in taken if one.words and not (one.open_only and batch[0].place.hidden)]
    kept = answer.summary.strip()
    if not apply:
        return Summary(summary=kept, themes=answer.themes, decisions=answer.decisions)
    said = terms_of("\n".join([previous.summary, *(one.said.text for one in batch)]))

    def fits(text: str) -> bool:
        return not any(words.hold(text, said, half=True) for words in apply)

    for words in apply:
        if words.hold(kept, said):
            kept = struck(kept, words, said, half=True)
    themes, decisions = (list(filter(fits, texts)) for texts in (answer.themes, answer.decisions))
    return Summary(summary=kept, themes=themes, decisions=decisions)
