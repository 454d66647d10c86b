"""What is offered to a person without a command, and what waits for their yes, as a list with menus.

What comes without a command has no frame, so that it takes no more room than a text would. A menu's options
are the events that proposed something; what became of them meanwhile is looked up when one is chosen. Discord
takes 25 options in a menu, so the rest comes when these are answered.
"""

from collections.abc import Sequence

from discoclaw.bot import naming
from discoclaw.core import draft_patch
from discoclaw.core.decay import DAY_MS
from discoclaw.core.item import Item
from discoclaw.core.pending import Pending
from discoclaw.core.ports import AnyOffer, AskOffer, ChoiceOffer, HatchOffer, ReminderOffer
from discoclaw.core.privacy import may_show
from discoclaw.core.text import clip
from discoclaw.core.view import View
from discoclaw.core.yours import yours
from discoclaw.show.answer import YELLOW, Answer, Button, Menu, Row, Turn
from discoclaw.show.markup import NOTE, ago, name, said, words
from discoclaw.show.words import count, line

NO_PERSONALITY = (
    f"{NOTE}I have no personality yet. Shall we set one up? It takes a few questions; I ask this only once."
)
TITLE = "Waiting for your yes"
NOTHING = "Nothing waits for your yes."
MOST_OPTIONS = 25
"""In one menu of Discord."""
MOST_SHOWN = 10
"""Proposals on a page of the card."""
LONGEST_SHOWN = 300
"""Longest words of each of them, in UTF-16 units."""
_LABEL = 100
"""The longest label of an option in a menu, in UTF-16 units."""


def waiting(user_id: str, view: View, branch: str, *, in_private: bool, days: float, page: int = 1) -> Answer:
    """What waits for a person's yes, oldest first, with a menu to agree and one to decline.

    What nobody else may read is only counted unless `in_private`. After so many `days` a proposal lapses.
    """
    known = [one for one in view.pending if in_private or _is_open(view, one)]
    some, others, hidden = known[:MOST_OPTIONS], len(known[MOST_OPTIONS:]), len(view.pending) - len(known)
    if not view.pending:
        return Answer(TITLE, [Row(NOTHING)], colour=YELLOW)
    rows = []
    for number, one in enumerate(some, 1):
        would_be = would(one, view.items.get(one.item.id), LONGEST_SHOWN)
        ends = f"lapses {ago(one.at + int(days * DAY_MS))}" if days > 0 else ""
        typed = f"{number}. {would_be}" + (f" ({ends})" if ends else "")
        rows.append(Row(f"{number}\\. {would_be}", ends, line=typed))
    foot = [f"and {others} more, which come when these are answered"] if others else []
    if hidden:
        foot.append(f"({count(hidden, 'private one')}: use `/memory pending`, or ask me in a DM)")
    options = [
        (
            clip(f"{number}. {'' if one.item.active else 'forget: '}{line(yours(one.text), _LABEL)}", _LABEL),
            "",
            one.event_id,
        )
        for number, one in enumerate(some, 1)
    ]
    hints = (("yes", "Yes to …"), ("no", "No to …")) if some else ()
    return Answer(
        TITLE,
        rows,
        small=[count(len(view.pending), "proposal")],
        foot=foot,
        menus=[Menu(f"choice:{user_id}:{how}:{branch}", hint, options, len(options)) for how, hint in hints],
        turn=Turn(user_id, "pending"),
        page=page,
        most=MOST_SHOWN,
        colour=YELLOW,
    )


# ---------------------------------------------------------------------- below an answer, or below talk


def offered(offer: AnyOffer) -> Answer:
    """A proposal of a turn, as it is shown below its answer."""
    user_id = offer.user_id
    if isinstance(offer, AskOffer):
        text = asked(offer.pending, offer.held)
        return proposed(text, user_id, offer.commit, offer.branch, whole=True, several=False)
    if isinstance(offer, ReminderOffer):
        return beside(offer.text, *reminder_buttons(user_id, offer.reminder_id, asks_zone=offer.asks_zone))
    if isinstance(offer, HatchOffer):
        return beside(NO_PERSONALITY, Button(f"hatch:{user_id}", "Start the interview"))
    if isinstance(offer, ChoiceOffer):
        verb = "edit" if offer.text else "forget"
        return naming.offer(verb, offer.about, offer.text, user_id, offer.branch)
    text = f"{NOTE}Switch to your persona **{name(offer.branch)}**?"
    return beside(text, Button(f"switch:{user_id}:{offer.branch}", f"Switch to {offer.branch}"))


def beside(text: str, button: Button, *below: Button) -> Answer:
    """A line with a button, and others below it."""
    return Answer(rows=[Row(text, control=button)], controls=below, colour=None)


def reminder_buttons(user_id: str, reminder_id: str, *, asks_zone: bool) -> list[Button]:
    """What can be done about a reminder that was just set."""
    found = [Button(f"unremind:{user_id}:{reminder_id}", "Undo")]
    return [*found, Button(f"zone:{user_id}:{reminder_id}", "My time zone")] if asks_zone else found


def undo_button(user_id: str, commit: str, branch: str) -> Button:
    """Takes a change back."""
    return Button(f"undo:{user_id}:{commit}:{branch}", "Undo")


def proposed(text: str, user_id: str, commit: str, branch: str, *, whole: bool, several: bool) -> Answer:
    """A question about what a change proposed: yes and no if it shows the `whole`, a choice of `several`."""
    controls = []
    if whole:
        controls += [
            Button(f"answer:{user_id}:yes:{commit}:{branch}", "Yes", "green"),
            Button(f"answer:{user_id}:no:{commit}:{branch}", "No"),
        ]
    if several or not whole:
        controls.append(Button(f"choose:{user_id}:{branch}", "Choose"))
    return Answer(rows=[Row(text)], controls=controls, colour=None)


def asked(one: Pending, held: Item | None) -> str:
    """A model's question about what is pending, and what exactly a yes would do, in small print."""
    question = words(one.question, draft_patch.LONGEST)
    return f"{NOTE}{question}\n{NOTE}With a yes, I {would(one, held, 300)}."


def would(one: Pending, held: Item | None, room: int) -> str:
    """The effect of a yes: `remember “You like tea.”`. `held` is the item that it would change."""
    if not one.item.active:
        return f"forget {said(yours(one.text), room)}"
    if held is None or not held.active:
        return f"remember {said(yours(one.text), room)}"
    return f"change {said(yours(held.text), room // 2)} to {said(yours(one.text), room // 2)}"


def answered(items: Sequence[Item], *, yes: bool, in_private: bool) -> str:
    """The small print about proposals that were answered."""
    lines = []
    for item in items:
        open_ = in_private or may_show(item, in_dm=False)
        text = line(yours(item.text), 200) if open_ else "something private"
        if not item.active:
            lines.append(f"{NOTE}forgotten: {text}" if yes else f"{NOTE}still remembered: {text}")
        else:
            lines.append(f"{NOTE}remembered: {text}" if yes else f"{NOTE}not remembered: {text}")
    return "\n".join(lines)


def _is_open(view: View, one: Pending) -> bool:
    held = view.items.get(one.item.id)
    return may_show(one.item, in_dm=False) and (held is None or may_show(held, in_dm=False))
