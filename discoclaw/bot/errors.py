"""Discord's failures become the core's `ChatError`s, here and nowhere else in the bot.

Knows nothing about what was being sent or what to do about a failure; the vendor's error stays the
`__cause__`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp
import discord

from discoclaw.core.errors import ChatBlocked, ChatError, ChatForbidden, ChatGone, ChatUnavailable

MODERATED = frozenset({200_000, 200_001, 240_000})
"""Discord's codes for words that AutoMod, or its filter of harmful links, blocked."""
MOST_SAID = 300
"""The longest reason that is passed on: a proxy before Discord answers with a page."""
Vendor = discord.HTTPException | discord.RateLimited | aiohttp.ClientError | OSError


@contextmanager
def discord_errors() -> Iterator[None]:
    """Around calls of discord.py and nothing else: an `OSError` in here is taken for a lost connection."""
    try:
        yield
    except (discord.HTTPException, discord.RateLimited, aiohttp.ClientError, OSError) as error:
        raise chat_error(error) from error
    except AttributeError as error:
        if error.obj is not discord.utils.MISSING:  # discord.py's session, until it logs in
            raise
        raise ChatUnavailable("Discord is not connected yet") from error


def chat_error(error: Vendor) -> ChatError:
    """Our error for one of discord.py. A plain `ChatError`: Discord refused the content."""
    if isinstance(error, discord.RateLimited):
        wait_s = error.retry_after
        return ChatUnavailable(f"Discord limits us for another {wait_s:.0f} s", after_s=wait_s)
    if not isinstance(error, discord.HTTPException):
        return ChatUnavailable(f"no connection to Discord ({type(error).__name__}: {error})")
    said = f"{error.status}, code {error.code}: {error.text or 'no reason given'}"
    if error.code in MODERATED:
        return ChatBlocked(f"Discord's moderation blocked it ({said})")
    if error.status in (401, 403):
        return ChatForbidden(f"Discord does not allow it ({said})")
    if error.status == 404:
        return ChatGone(f"it is no longer there ({said})")
    if error.status in (408, 429) or error.status >= 500:
        asked = error.response.headers.get("Retry-After", "")
        after_s = float(asked) if asked.isdecimal() else 0.0  # it may be a date
        return ChatUnavailable(f"Discord is not available ({said[:MOST_SAID]})", after_s=after_s)
    return ChatError(f"Discord refused it ({said})")


def worth_retrying(error: ChatError) -> bool:
    """Whether the same call may work in a moment. Not after a rate limit: discord.py has waited for that."""
    cause = error.__cause__
    limited = isinstance(cause, discord.RateLimited) or getattr(cause, "status", None) == 429
    return isinstance(error, ChatUnavailable) and not limited
