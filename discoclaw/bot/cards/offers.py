"""The cards that come without a command: receipts, what waits for a yes, and what is offered below an answer.

They have no frame: small print with its buttons, so that they take no more room than a text would.
"""

from discoclaw.bot.cards.card import Button, Card, Entry


def learned(text: str, user_id: str, commit: str, branch: str) -> Card:
    """A receipt, with a button that takes the change back."""
    return _beside(text, undo(user_id, commit, branch))


def undo(user_id: str, commit: str, branch: str) -> Button:
    """Takes a change back."""
    return Button(f"undo:{user_id}:{commit}:{branch}", "Undo")


def proposed(text: str, user_id: str, commit: str, branch: str, *, whole: bool, several: bool) -> Card:
    """A question about what a change proposed: yes and no if it shows the `whole`, a choice of `several`."""
    controls = []
    if whole:
        controls += [
            Button(f"answer:{user_id}:yes:{commit}:{branch}", "Yes", "green"),
            Button(f"answer:{user_id}:no:{commit}:{branch}", "No"),
        ]
    if several or not whole:
        controls.append(Button(f"choose:{user_id}:{branch}", "Choose"))
    return Card("", [Entry(text)], controls=controls, colour=None)


def persona(text: str, user_id: str, branch: str) -> Card:
    """An offer to switch to a persona."""
    return _beside(text, Button(f"switch:{user_id}:{branch}", f"Switch to {branch}"))


def choosing(text: str, user_id: str, verb: str, branch: str) -> Card:
    """An offer to choose the memories for a command."""
    return _beside(text, Button(f"list:{user_id}:{verb}:1:{branch}", "Choose"))


def interview(text: str, user_id: str) -> Card:
    """An offer to set up a personality."""
    return _beside(text, Button(f"hatch:{user_id}", "Start the interview"))


def _beside(text: str, button: Button) -> Card:
    return Card("", [Entry(text, control=button)], colour=None)
