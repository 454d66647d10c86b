"""The card of what is to be settled: one question a page, with its answers below."""

from collections.abc import Mapping, Sequence

from discoclaw.bot.cards.card import YELLOW, Button, Card, Entry, Style, Turn
from discoclaw.bot.texts.markup import plain
from discoclaw.bot.texts.memory import asked
from discoclaw.core.draft import Resolution
from discoclaw.core.view import Conflict, View
from discoclaw.show import text as shown
from discoclaw.show.words import count

TITLE = "Which is right?"
HOW: Mapping[str, Resolution] = {"k": "keep_old", "n": "use_new", "b": "both_valid"}
"""The answers, by the letter that stands in a custom id."""
_LETTERS = {how: letter for letter, how in HOW.items()}


def answers_to(conflict: Conflict) -> list[tuple[Resolution, str, Style]]:
    """The answers to a question: three, or two where there are no other words to keep as well."""
    if not conflict.text:
        return [("keep_old", "Still true", "grey"), ("use_new", "Forget it", "red")]
    return [
        ("keep_old", "Keep the old", "grey"),
        ("use_new", "Use the new", "grey"),
        ("both_valid", "Keep both", "grey"),
    ]


def settle_buttons(user_id: str, conflict: Conflict, branch: str) -> list[Button]:
    """The answers to a question that stands alone."""
    return [
        Button(f"settle:{user_id}:{conflict.event_id}:{how}:{branch}", label, style)
        for how, label, style in answers_to(conflict)
    ]


def contradiction(
    view: View, conflict: Conflict, user_id: str, branch: str, *, said: tuple[str, str], guess: str
) -> Card:
    """A question that the bot asks by itself. `said` is when and where each side was said."""
    first, second, why = shown.sides(*asked(view, conflict))
    return Card(
        TITLE,
        [
            Entry(plain(first), said[0]),
            Entry(plain(second[:1].upper() + second[1:]), " · ".join(filter(None, (said[1], plain(why))))),
        ],
        small=["a question about what I remember about you"],
        foot=[guess] if guess else [],
        controls=settle_buttons(user_id, conflict, branch),
        colour=YELLOW,
    )


def to_settle(asked: Sequence[tuple[Conflict, str]], turn: Turn, branch: str, *, page: int) -> Card:
    """The questions (each with its text as markup), of which there is at least one."""
    page = max(1, min(page, len(asked)))
    conflict, _ = asked[page - 1]
    return Card(
        TITLE,
        [Entry(question) for _, question in asked],
        small=[count(len(asked), "question")],
        controls=[
            Button(f"decide:{turn.user_id}:{conflict.event_id}:{_LETTERS[how]}:{page}:{branch}", label, style)
            for how, label, style in answers_to(conflict)
        ],
        turn=turn,
        page=page,
        most=1,
        colour=YELLOW,
    )
