"""Which memory somebody means: the questions about it, with their buttons and menus, as values.

`bot/commands/call` asks, and `buttons` takes the presses.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from discoclaw.commands.memories import LOST, row_of, stamp
from discoclaw.core.item import Item
from discoclaw.core.text import clip, collapse
from discoclaw.core.yours import yours
from discoclaw.show.answer import Answer, Button, Menu, Row, Style, message
from discoclaw.show.markup import plain, said, unmarked, words
from discoclaw.show.words import count, line, short

MOST_OPTIONS = 25
"""Discord's limit for a menu."""
MOST_LABEL = 100
"""Discord's limit, in characters, for what an option says and for what stands below it."""
ON_A_PAGE = 10
TWO_THINGS = "-# That says two things. As two memories, each can be changed or forgotten alone."
OTHERS = "Or choose which"
LEFT = "I changed nothing."
NONE_OF_THESE = "None of these"

_QUOTED = 200
"""Longest text of a memory in a question, in UTF-16 units."""
_TYPED = 300
_LISTED = 130
_NEW = "\n> "
_FOR = re.compile(r"For “(.*)” I found")


@dataclass(frozen=True, slots=True)
class Act:
    """The questions of a command before it acts on a memory that was not named exactly."""

    ask: str
    which: str
    yes: str
    no: str = "Leave it"
    harmful: bool = False


ACTS: Mapping[str, Act] = {
    "forget": Act("Forget {it}?", "Which should I forget?", "Forget", "Keep", harmful=True),
    "edit": Act("Change {it} to this?", "Which one should say this?", "Change"),
    "private": Act("Use {it} in our DMs only?", "Which should I use in our DMs only?", "Use in DMs only"),
    "share": Act("Use {it} everywhere?", "Which should I use everywhere?", "Use everywhere"),
    "history split": Act(
        "Make two memories of {it}?", "Which one says two things?", "Make two", "Leave it as one"
    ),
    "why": Act("Do you mean {it}?", "Which one do you mean?", "Yes", "No"),
}
"""The questions of each command, by its name."""


def one(verb: str, item: Item, *, new: str = "", hidden: int = 0) -> str:
    """The question about the only memory that matches. `hidden` private ones match too."""
    return ACTS[verb].ask.format(it=said(yours(item.text), _QUOTED)) + _too(verb, hidden) + _new(new)


def near(item: Item, *, new: str = "") -> str:
    """The question about the nearest memory, where none matches."""
    then = " It would then say:" if new else ""
    return f"I know nothing like that. Did you mean {said(yours(item.text), _QUOTED)}?{then}{_new(new)}"


def several(verb: str, matching: int, *, new: str = "", hidden: int = 0) -> str:
    """The question above a menu of the memories that match."""
    text = f"That matches {count(matching, 'memory')}. {ACTS[verb].which}"
    if matching > MOST_OPTIONS:
        more = matching - MOST_OPTIONS
        text += (
            f" The menu has the {MOST_OPTIONS} newest; to find the other {more}, type more of their words."
        )
    return text + _too(verb, hidden) + _new(new)


def listed(
    verb: str,
    typed: str,
    items: Sequence[Item],
    ticked: Collection[str],
    page: int,
    *,
    hidden: int = 0,
    by_text: bool = False,
) -> str:
    """A page of a list of memories; those with their ids in `ticked` are meant.

    `by_text`: the command was given as a text, so numbers can be typed too.
    """
    first, pages = (page - 1) * ON_A_PAGE, -(-len(items) // ON_A_PAGE)
    some = list(enumerate(items, 1))[first : first + ON_A_PAGE]
    likely = count(len(ticked), "memory") if ticked else "nothing like that, but what comes near"
    head = f"For {said(typed, _TYPED)} I found {likely}. "
    lines = [
        f"{'✅' if one.id in ticked else '⬜'} {number}. {words(yours(one.text), _LISTED)}"
        for number, one in some
    ]
    numbers = " ".join([str(number) for number, _ in some][:2])
    foot = [f"-# You can also type `!memory {verb} {numbers}`."] if by_text else []
    foot += [f"-# Page {page} of {pages}."] if pages > 1 else []
    return "\n".join([f"{head}{ACTS[verb].which}", *lines, *foot]) + _too(verb, hidden)


def typed_in(page: str) -> str:
    """The words typed for the list of which this is a page."""
    found = _FOR.search(page)
    return unmarked(found[1]) if found else ""


def lost_in(message: str) -> str:
    """The statement that an edit left out, from what the message says about it."""
    found = re.search(rf"{LOST}“(.*)”\.", message)
    return unmarked(found[1]) if found else ""


def only_private(number: int, verb: str) -> str:
    """The answer where others read it, if nothing else matches: none of the words, not even those typed."""
    matching = (
        "Only a private memory matches that."
        if number == 1
        else f"Only {count(number, 'private memory')} match that."
    )
    return f"{matching} Use `/memory {verb}`, or ask me in a DM."


def nothing(typed: str) -> str:
    """The answer if nothing matches and nothing is near."""
    return f"I remember nothing that matches {said(typed, _TYPED)}. `!memory show` lists everything."


def too_long(items: Sequence[Item]) -> str:
    """The answer if the new text of a memory does not fit below a question."""
    number = short(items[0].id)
    return (
        "That text is too long for a question. Say which memory you mean by its id, for example "
        f"`!memory edit {number} <new text>`:\n" + "\n".join(row_of(one).line for one in items[:MOST_OPTIONS])
    )


def new_text(question: str) -> str:
    """The new text that stands below a question; "" if there is none."""
    return unmarked(question.rpartition(_NEW)[2]) if _NEW in question else ""


def _new(text: str) -> str:
    return f"{_NEW}{plain(collapse(text))}" if text else ""


def _too(verb: str, hidden: int) -> str:
    if not hidden:
        return ""
    matches = "matches" if hidden == 1 else "match"
    return f"\n({count(hidden, 'private memory')} {matches} too: use `/memory {verb}`, or ask me in a DM)"


# ---------------------------------------------------------------------- buttons and menus


def about_one(text: str, user_id: str, verb: str, item: Item, branch: str) -> Answer:
    """A question about one memory, with yes and no."""
    act = ACTS[verb]
    yes = Button(f"act:{user_id}:{verb}:{stamp(item)}:{branch}", act.yes, _style(act))
    return message(text, [yes, Button(f"leave:{user_id}", act.no)])


def about_several(text: str, user_id: str, verb: str, items: Sequence[Item], branch: str) -> Answer:
    """A question with a menu of memories, as many as Discord takes, and a way to choose none."""
    options = [_option(item) for item in items[:MOST_OPTIONS]]
    menu = Menu(f"pick:{user_id}:{verb}:{branch}", ACTS[verb].which, options)
    return message(text, [Button(f"leave:{user_id}", NONE_OF_THESE)], [menu])


def about_list(
    text: str,
    user_id: str,
    verb: str,
    items: Sequence[Item],
    ticked: Collection[str],
    branch: str,
    page: int,
) -> Answer:
    """A page of a list: one press for those that are `ticked` (ids), a menu for others."""
    act, first = ACTS[verb], (page - 1) * ON_A_PAGE
    some = list(enumerate(items[first : first + ON_A_PAGE], first + 1))
    options = [_option(one, number) for number, one in some]
    chosen = {number: stamp(one) for number, one in some if one.id in ticked}
    menu = Menu(
        f"pick:{user_id}:{verb}:{branch}",
        OTHERS,
        options,
        len(options),
        ticked=frozenset(chosen.values()),
    )
    controls = []
    if chosen:
        label = f"{act.yes}: {', '.join(map(str, chosen))}"
        controls.append(Button(f"ticked:{user_id}:{verb}:{branch}", label, _style(act)))
    controls.append(Button(f"leave:{user_id}", NONE_OF_THESE))
    pages = -(-len(items) // ON_A_PAGE)
    for there, sign in ((page - 1, "◀"), (page + 1, "▶")):
        if 1 <= there <= pages:
            controls.append(Button(f"list:{user_id}:{verb}:{there}:{branch}", sign))
    return message(text, controls, [menu])


def offer(verb: str, about: str, new: str, user_id: str, branch: str) -> Answer:
    """An offer, below an answer, to list what the model proposes to forget or change."""
    text = f"For {said(about, _TYPED)} I found memories. {ACTS[verb].which}{_new(new)}"
    button = Button(f"list:{user_id}:{verb}:1:{branch}", "Choose")
    return Answer(rows=[Row(text, control=button)], colour=None)


def _style(act: Act) -> Style:
    return "red" if act.harmful else "blue"


def _option(item: Item, number: int = 0) -> tuple[str, str, str]:
    """A memory in a menu: its text, in a list with its number; its id and kind; its stamp."""
    secret = "" if item.facets.sensitivity == "normal" else f", {item.facets.sensitivity}"
    text = line(yours(item.text))
    label = clip(f"{number}. {text}" if number else text, MOST_LABEL) or "…"
    return label, clip(f"{item.kind}, id {short(item.id)}{secret}", MOST_LABEL), stamp(item)
