"""Questions to a person about memories that contradict each other: which there are, and settling one."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from discoclaw.commands.caller import DONE_ALREADY, OPTED_OUT, Caller
from discoclaw.commands.memories import question as asked_as
from discoclaw.core.draft import Resolution
from discoclaw.core.errors import Refused
from discoclaw.core.view import Conflict, View
from discoclaw.core.yours import yours
from discoclaw.memory.subjects import verbs
from discoclaw.show import text as shown
from discoclaw.show.answer import YELLOW, Answer, Button, Reply, Row, Style, Turn, message
from discoclaw.show.markup import NOTE, said
from discoclaw.show.words import PRIVATE, count, quoted, short, word

TITLE: Final = "Which is right?"
ANSWERS: Final[Mapping[Resolution, str]] = {
    "keep_old": "Keep the old",
    "use_new": "Use the new",
    "both_valid": "Keep both",
}
LETTERS: Final[Mapping[str, Resolution]] = {"k": "keep_old", "n": "use_new", "b": "both_valid"}
"""The answers, by the letter that stands in a custom id of a card that turns to the next question."""
TYPED: Final[Mapping[Resolution, str]] = {"keep_old": "keep", "use_new": "new", "both_valid": "both"}
"""The answers on the command line."""
MOST_AT_ONCE = 5
"""Questions are a message each, because of their buttons."""


@dataclass(frozen=True, slots=True)
class Open:
    """A conflict that waits for the person, where it stands, and with what else."""

    conflict: Conflict
    branch: str
    view: View


async def open_on(
    branches: Iterable[str], view: Callable[[str], Awaitable[View]], *, confidential: bool = True
) -> dict[str, Open]:
    """The open questions by the event that noted each, each on the first branch that has it."""
    found: dict[str, Open] = {}
    for branch in branches:
        now = await view(branch)
        for conflict in now.conflicts:
            item = now.items.get(conflict.item_id)
            secrets = {conflict.sensitivity, item.facets.sensitivity if item is not None else "normal"}
            if confidential or "confidential" not in secrets:
                found.setdefault(conflict.event_id, Open(conflict, branch, now))
    return found


def answers(conflict: Conflict, custom_id: str) -> list[Button]:
    """The answers to a question: three, or two where there are no other words to keep as well.

    In the `custom_id`, `{how}` stands for the answer, and `{letter}` for its letter.
    """
    labels: list[tuple[Resolution, str, Style]] = [(how, label, "grey") for how, label in ANSWERS.items()]
    if not conflict.text:
        labels = [("keep_old", "Still true", "grey"), ("use_new", "Forget it", "red")]
    letters = {how: letter for letter, how in LETTERS.items()}
    return [
        Button(custom_id.replace("{how}", how).replace("{letter}", letters[how]), label, style)
        for how, label, style in labels
    ]


async def settle(caller: Caller, question: str | None = None, how: Resolution | None = None) -> Reply:
    """The open questions; or the outcome of one, named by its event, that the person answered."""
    branches, here = await caller.branches(), caller.persona_here
    if caller.terminal:
        there = [branches.named(here).name] if here is not None else [branches.current, *branches.all]
        open_ = await open_on(there, caller.view)
        if question is not None and how is not None:
            return await _settled(caller, _meant(open_, question), how)
        told = [
            f"{key} [{word(one.branch)}] {shown.conflict(one.view, one.conflict)}"
            for key, one in open_.items()
        ]
        if open_:
            first = f"discoclaw memory settle {caller.subject} {next(iter(open_))[:8]} keep|new|both"
            told += ["", f"Answer one with `{first}`."]
        data = [asdict(one.conflict) | {"branch": one.branch} for one in open_.values()]
        return Answer(typed="\n".join(told) or "There are no open questions.", data=data)
    if question is not None and how is not None:
        if here is None or here not in branches.all:
            raise Refused(f"the persona {here!r} is gone, and the question with it")
        if how != "keep_old" and caller.opted_out:
            raise Refused(OPTED_OUT)
        open_ = await open_on([here], caller.view)
        if question not in open_:
            raise Refused(DONE_ALREADY)
        return await _settled(caller, open_[question], how)
    # A place's own persona begins with what is known.
    branch = here if here is not None and here in branches.all else branches.current
    view = await caller.view(branch)
    asked = [(one, asked_as(view, one, in_private=caller.in_private)) for one in view.conflicts]
    hidden = sum(text == PRIVATE for _, text in asked)
    asked = [(one, text) for one, text in asked if text != PRIVATE]
    if not asked and not hidden:
        return "There is nothing to settle."
    if asked and not caller.typed:
        page = max(1, min(caller.page, len(asked)))
        conflict = asked[page - 1][0]
        known = f"decide:{caller.user_id}:{conflict.event_id}:{{letter}}:{page}:{branch}"
        return Answer(
            TITLE,
            [Row(text) for _, text in asked],
            small=[count(len(asked), "question")],
            controls=answers(conflict, known),
            turn=Turn(caller.user_id, "settle"),
            page=page,
            most=1,
            colour=YELLOW,
        )
    messages = []
    for conflict, text in asked[:MOST_AT_ONCE]:
        known = f"settle:{caller.user_id}:{conflict.event_id}:{{how}}:{branch}"
        messages.append(message(f"{text}. Which is right?", answers(conflict, known)))
    if more := len(asked) - len(messages):
        messages.append(message(f"({count(more, 'more question')}: answer these first)"))
    if hidden:
        messages.append(
            message(f"({count(hidden, 'private question')}: use `/memory settle`, or ask me in a DM)")
        )
    return messages


def _meant(open_: Mapping[str, Open], wanted: str) -> Open:
    """The question whose id begins so. Raises Refused, with those there are, if that isn't exactly one."""
    prefix = wanted.strip().lower()
    found = [event_id for event_id in open_ if prefix and event_id.startswith(prefix)]
    if len(found) == 1:
        return open_[found[0]]
    several = [open_[event_id] for event_id in found or open_]
    listed = "; ".join(f"{one.conflict.event_id} {shown.conflict(one.view, one.conflict)}" for one in several)
    if found:
        raise Refused(f"{len(found)} questions begin with {quoted(wanted, 60)}; give more digits: {listed}")
    what = f"open: {listed}" if open_ else "none is open"
    raise Refused(f"no question has the id {quoted(wanted, 60)}; {what}")


async def _settled(caller: Caller, one: Open, how: Resolution) -> str:
    conflict, branch, before = one.conflict, one.branch, one.view.items.get(one.conflict.item_id)
    origin, made = caller.origin(), caller.metadata
    await verbs.settle(caller.memory, caller.subject, conflict.event_id, how, origin, branch=branch, **made)
    if caller.terminal:
        item = (await caller.view(branch)).items.get(conflict.item_id)
        now = "the item was removed in the meantime"
        if item is not None:
            now = f"{short(item.id)} {quoted(item.text)}{'' if item.active else ' is forgotten'}"
        return f"Settled on {branch}, {TYPED[how]}: {now}"
    assert before is not None  # a question without its item is not asked
    old, new = said(yours(before.text)), said(yours(conflict.text))
    if how == "keep_old":
        return f"{NOTE}Settled: I keep {old}."
    if how == "both_valid":
        return f"{NOTE}Settled: I keep both, {old} and {new}."
    if conflict.text:
        return f"{NOTE}Settled: from now on I use {new}."
    return f"{NOTE}Settled: I forgot {old}."
