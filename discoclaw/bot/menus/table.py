"""The commands in the menu of a message. Discord takes five; their names are what people read there."""

from discoclaw.bot.commands.ask import STILL_ASKING
from discoclaw.bot.commands.spec import Command, Param
from discoclaw.bot.menus import asking, explaining, learned, remembering
from discoclaw.bot.modals import LONGEST

MENUS = (
    Command(
        "Remember this",
        remembering.remember,
        "Your own message becomes a memory; somebody else's, a memory about what they said",
        adds=True,
        anywhere=True,
    ),
    Command(
        "What was learned from this?",
        learned.learned,
        "Your memories that rest on this message, each with a button to forget it",
        anywhere=True,
    ),
    Command("Why this answer?", explaining.why, "What one of my answers to you was based on"),
    Command(
        "Ask about this",
        asking.ask_about,
        "Ask me something about this message; only you see the answer",
        (Param("question", "What would you like to know?", required=True, bounds=(1, LONGEST)),),
        needs=(),
        aside=STILL_ASKING,
        anywhere=True,
    ),
)
