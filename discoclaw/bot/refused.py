"""What follows when Discord refuses an answer: the person gets it in a DM, and a sentence where they asked.

An answer holds nothing that was not to be said in the open, so its person may have it in a DM as well. Where
they asked, a sentence says what happened, as far as anything can be said there. Blocked words are not
repeated. Knows nothing about how an answer is sent.
"""

import logging
from collections.abc import Awaitable, Callable

from discoclaw.core.errors import (
    ChatBlocked,
    ChatError,
    ChatForbidden,
    ChatGone,
    ChatTooLong,
    ChatUnavailable,
)

log = logging.getLogger(__name__)

ANSWER, REST = "my answer", "the rest of my answer"
TOO_LATE = "Discord brought me your command too late, so I did nothing. Please try it again."

_IN_DM: tuple[tuple[type[ChatError], str], ...] = (
    (ChatBlocked, "The server's AutoMod blocked {what} in {place}, so here it is:"),
    (ChatForbidden, "I'm not allowed to write in {place}, so here is {what}. An admin can change that."),
    (ChatGone, "The place where you asked me is gone, so here is {what}:"),
    (ChatTooLong, "I'm not allowed to attach files in {place}, so here is {what}:"),
    (ChatError, "Discord didn't take {what} in {place}, so here it is:"),
)
_THERE: tuple[tuple[type[ChatError], str], ...] = (
    (ChatBlocked, "This server's AutoMod blocked {what}."),
    (ChatTooLong, "{What} is too long for messages, and I'm not allowed to attach files here."),
    (ChatError, "Discord didn't take {what}."),
)
_SENT = " I've sent it to you in a DM."
_NOT_SENT = " I couldn't send it to you in a DM either."


async def elsewhere(
    error: ChatError,
    *,
    what: str,
    place: str,
    in_dm: Callable[[str], Awaitable[object]] | None,
    there: Callable[[str], Awaitable[object]],
) -> None:
    """Deliver what was refused with `error` in a DM, below a sentence, and say so where it was asked for.

    `in_dm` is None if it was asked for in a DM. Both raise ChatError; then there is only a line in the log.
    """
    sent = in_dm is not None and await _tried(in_dm, _sentence(_IN_DM, error, what, place))
    if isinstance(error, ChatForbidden | ChatGone | ChatUnavailable):
        return  # nothing can be said there
    where = "" if in_dm is None else _SENT if sent else _NOT_SENT
    await _tried(there, _sentence(_THERE, error, what, place) + where)


def _sentence(table: tuple[tuple[type[ChatError], str], ...], error: ChatError, what: str, place: str) -> str:
    text = next(text for kind, text in table if isinstance(error, kind))
    return text.format(what=what, What=what[:1].upper() + what[1:], place=place)


async def _tried(send: Callable[[str], Awaitable[object]], text: str) -> bool:
    try:
        await send(text)
    except ChatError as error:
        log.info("a person could not be told that an answer was refused: %s", error)
        return False
    return True
