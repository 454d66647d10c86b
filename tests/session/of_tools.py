"""The memory tools of the model: whose memory they reach, and what they say when they cannot."""

import hashlib

from discoclaw.core.draft import Origin
from discoclaw.core.policy import Policy
from tests.session.scene import (
    ANN,
    GENERAL,
    House,
    Place,
    Recorder,
    calls,
    inbound,
)

ALWAYS = Policy("all")
SECRET = Origin("stated", private=True)


async def call(
    home: House, name: str, place: Place = GENERAL, /, *, author=ANN, number: int = 1000, **given: object
) -> tuple[bool, str]:
    """One tool call in a turn: whether it failed, and what the model read."""
    home.model.answers.extend([calls((name, given)), "Done."])
    home.hear(message := inbound(number, "please", author, place), ALWAYS)
    home.answer(message, Recorder())
    await home.desk.settle()
    (result,) = home.model.results()
    return result


def hashes(home: House, *but: str) -> dict[str, str]:
    """What lies on disk of everybody, but of those named."""
    files = [*home.memory.ledger_folder.glob("*"), *home.memory.durable_folder.glob("*")]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not any(one in path.name for one in but)
    }
