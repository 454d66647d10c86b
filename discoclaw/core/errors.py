"""Every error of this house, drawn as one tree; vendors' errors become one of these at the door.

    DiscoClawError
    ├── SettingsError            a setting is wrong; the program does not start
    ├── MemoryFault              memory cannot be read or written; a reply never depends on it
    │   ├── LedgerDamaged        a ledger holds lines that do not verify
    │   ├── MemoryLate           a disk does not answer in time; what was asked of it may still happen
    │   ├── NewerSchema          a file was written by a newer version; it is never overwritten
    │   ├── FolderInUse          another process holds the data folder
    │   ├── Overtaken            somebody else wrote first; what was to be written rests on an older state
    │   └── LeaseLost            another process may do this work by now, so nothing is written any more
    ├── Refused                  a rule of the core said no; the text says why and what to do
    │   └── NotNow               it may say yes later
    ├── QuestionGone             what is being answered was deleted, so there is no answer any more
    ├── ModelError               the language model gave no usable answer
    │   ├── ModelOverloaded      the provider is overloaded (529, 503)
    │   ├── ModelRateLimited     too many requests or no quota left (429, 402)
    │   ├── ModelKeyRejected     the key is wrong or lacks a right (401, 403)
    │   ├── ModelNotFound        the model's name or the address is wrong (404)
    │   ├── ModelRefused         the model declined to answer
    │   ├── ModelTooLong         the request is larger than the model takes (413, context length)
    │   ├── ModelTimeout         no answer within the time limit
    │   ├── ModelUnreachable     no connection, or the stream broke off
    │   ├── ModelBadRequest      the provider rejected the request (400, 422)
    │   ├── ErasedMeanwhile      its person was erased before the model was asked
    │   ├── ModelSpent           a budget is spent, or too far for background work
    │   ├── ModelCut             the answer was cut off at its length limit
    │   ├── ModelEmpty           the model said nothing
    │   └── ModelBadOutput       the answer is not what was asked for (prose, wrong types, too large)
    ├── EmbeddingError           a provider gave no usable vectors; a reply never depends on them
    │   ├── EmbeddingUnavailable the provider fails or limits us for now (408, 429, 5xx, no connection)
    │   └── EmbeddingRefused     not for these texts: refused (400, 413, 422), or answered with nonsense
    ├── TranscriptionError       a voice message could not be turned into words, for example: wrong settings
    │   ├── TranscriptionSpent   a budget is spent
    │   ├── TranscriptionUnavailable the server fails, limits us or is too slow (408, 429, 5xx)
    │   └── TranscriptionRefused not this recording: refused (400, 413, 415, 422), too long, or without words
    ├── NostrError               an event cannot be made, read or delivered; a reply never depends on it
    │   ├── BadEvent             what a relay sent isn't an event, or its id or signature is wrong
    │   ├── UnreadableContent    an event's content cannot be decrypted or is not what it should be
    │   └── RelayError           a relay does not do what we asked for
    │       ├── RelayUnreachable no connection, or it broke off, or it does not answer in time
    │       └── RelayRefused     it said no: `prefix` and text are its own (NIP-01)
    └── ChatError                Discord did not take what we sent
        ├── ChatForbidden        we may not (403)
        ├── ChatGone             the channel, message or file is no longer there (404)
        ├── FileTooLarge         a file has more bytes than we read
        └── ChatUnavailable      Discord fails or limits us (429 after retries, 5xx, connection)

This module knows nothing about who raises these or who shows them.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class DiscoClawError(Exception):
    """Base of all our errors; never raised itself."""

    after_s: float = 0.0
    """Seconds to wait before the same is tried again, where whoever failed asks for that."""


def meaning(error: BaseException) -> str:
    """The kind of a failure, in words that name nobody: neither a person nor a file nor a host."""
    if not isinstance(error, DiscoClawError) or (doc := type(error).__doc__) is None:
        return type(error).__name__
    said = doc.splitlines()[0].split(". ")[0].rstrip(".")
    return said[:1].lower() + said[1:]


class SettingsError(DiscoClawError):
    """A setting is wrong. The text is one line: variable, value, what is allowed."""


class MemoryFault(DiscoClawError):
    """Memory cannot be read or written (disk full, permission, damage)."""


@contextmanager
def faulting(text: str) -> Iterator[None]:
    """Raise MemoryFault where the disk fails: this text, and the reason in words.

    The reason names the file, unless the text does.
    """
    try:
        yield
    except OSError as error:
        told = error.filename is None or str(error.filename) in text
        reason = error.strerror or str(error)
        raise MemoryFault(f"{text}: {reason if told else f'{reason} ({error.filename})'}") from error


class LedgerDamaged(MemoryFault):
    """A ledger holds a line that does not parse or verify; the text names line and reason."""


class MemoryLate(MemoryFault):
    """A disk does not answer in time. What was asked of it may still happen."""


class NewerSchema(MemoryFault):
    """A file was written by a version we do not know; it is left as it is."""


class FolderInUse(MemoryFault):
    """Another process holds the data folder."""


class Overtaken(MemoryFault):
    """Somebody else wrote first; what was to be written rests on an older state."""


class LeaseLost(MemoryFault):
    """Another process may do this work by now, so nothing of it is written any more."""


class Refused(DiscoClawError):
    """A rule said no. The text is for the person or model who asked: what, and the way out."""


class NotNow(Refused):
    """Refused for now; retry later."""


class QuestionGone(DiscoClawError):
    """The message that is being answered was deleted in the chat."""


class ModelError(DiscoClawError):
    """The language model gave no usable answer."""

    user_message = "Something went wrong while I was thinking. Please try again."
    """For the person who waits for an answer. A provider may pass its own, which can name its settings."""
    status = 0
    """The HTTP status with which a server said so; 0 if it was not that."""

    def __init__(self, text: str = "", *, user_message: str | None = None) -> None:
        super().__init__(text)
        if user_message is not None:
            self.user_message = user_message


class ModelOverloaded(ModelError):
    """The provider is overloaded (HTTP 529 or 503)."""

    user_message = "The model is overloaded right now. Please try again in a minute."


class ModelRateLimited(ModelError):
    """Too many requests, or no quota left (HTTP 429 or 402)."""

    user_message = "I have reached the model's rate limit. Please try again in a few minutes."


class ModelKeyRejected(ModelError):
    """The API key is wrong or lacks a right (HTTP 401 or 403)."""

    user_message = "The model refused my API key, so I can't answer. An admin has to check the key."


class ModelNotSetUp(ModelKeyRejected):
    """The model is of a provider whose key or address isn't set here. The text names the setting."""


class ModelNotFound(ModelError):
    """The model's name or the address is wrong (HTTP 404)."""

    user_message = (
        "The server doesn't have the model I'm set up with. An admin has to check its name and the address."
    )


class ModelRefused(ModelError):
    """The model declined to answer."""

    user_message = "The model declined to answer that. Please put it another way."


class ModelTooLong(ModelError):
    """The request is larger than the model takes (HTTP 413, or over its context)."""

    user_message = "That's more text than the model can take at once. Please send it in smaller parts."


class ModelTimeout(ModelError):
    """No answer within the time limit."""

    user_message = "The model took too long, so I stopped waiting. Please try again."


class ModelUnreachable(ModelError):
    """No connection to the model, or its stream broke off."""

    user_message = "I can't reach the model right now. Please try again in a minute."


class ModelBadRequest(ModelError):
    """The provider rejected the request (HTTP 400 or 422)."""

    user_message = "The model didn't accept that request. Please put it another way; the reason is in my log."


class ErasedMeanwhile(ModelError):
    """The author was erased since they said it, so no model may be shown it any more."""

    user_message = "I erased what I know about you before I answered this. Please ask me again."


class ModelSpent(ModelError):
    """A budget is spent, or too far for background work. It may be better after `after_s` seconds."""

    user_message = "My budget doesn't allow that now. Please try again later."

    def __init__(self, text: str, *, user_message: str | None = None, after_s: float = 0.0) -> None:
        super().__init__(text, user_message=user_message)
        self.after_s = after_s


class ModelCut(ModelError):
    """The answer was cut off at its length limit."""

    user_message = (
        "The model reached its length limit before it said anything. Please ask for a smaller part of this."
    )


class ModelEmpty(ModelError):
    """The model said nothing, though perhaps it has thought."""


class ModelBadOutput(ModelError):
    """The answer is not what was asked for: prose instead of JSON, wrong types, too large."""

    user_message = (
        "The model's server sent something that I can't read as an answer. Please try again; "
        "if it happens again, whoever runs me finds the reason in my log."
    )


class EmbeddingError(DiscoClawError):
    """A provider gave no usable vectors. Raised itself when a setting is wrong (401, 403, 404, …)."""


class EmbeddingUnavailable(EmbeddingError):
    """The provider fails or limits us for now. `after_s`: it wants us to wait so many seconds."""

    def __init__(self, text: str, *, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.after_s = after_s


class EmbeddingRefused(EmbeddingError):
    """No vectors for just these texts: they were refused, or the answer is not what was asked for."""


class TranscriptionError(DiscoClawError):
    """A voice message could not be turned into words. Raised itself when a setting is wrong (401, 404, …)."""

    user_message = (
        "I can't listen to voice messages: my transcription isn't set up right. "
        "Please write it; whoever runs me finds the reason in my log."
    )
    """For the person who spoke."""

    def __init__(self, text: str = "", *, user_message: str | None = None) -> None:
        super().__init__(text)
        if user_message is not None:
            self.user_message = user_message


class TranscriptionSpent(TranscriptionError):
    """A budget is spent."""


class TranscriptionUnavailable(TranscriptionError):
    """The transcription server fails or limits us for now, or didn't answer in time."""

    user_message = (
        "I can't listen to voice messages right now: the server that transcribes them doesn't answer. "
        "Please write it, or try again later."
    )


class TranscriptionRefused(TranscriptionError):
    """No words for just this recording."""

    user_message = "The server that transcribes voice messages couldn't read this one. Please write it."


class NostrError(DiscoClawError):
    """An event cannot be made, read or delivered."""


class BadEvent(NostrError):
    """A relay sent something that isn't an event of Nostr, or its id or signature is wrong."""


class UnreadableContent(NostrError):
    """An event cannot be decrypted, or does not say what it should. It is kept, and counts for nothing."""


class RelayError(NostrError):
    """A relay does not do what we asked for."""


class RelayUnreachable(RelayError):
    """No connection to a relay, or it broke off, or no answer came in time."""


class RelayRefused(RelayError):
    """A relay said no. `prefix` is NIP-01's word for why (`rate-limited`, `blocked`, …), or ""."""

    def __init__(self, text: str, *, prefix: str = "") -> None:
        super().__init__(text)
        self.prefix = prefix


class ChatError(DiscoClawError):
    """Discord did not take what we sent."""


class ChatForbidden(ChatError):
    """We lack a permission there (HTTP 403)."""


class ChatBlocked(ChatError):
    """The server's own moderation (Discord's AutoMod) blocked the words."""


class ChatTooLong(ChatError):
    """The answer is more than we send as messages, and a file is refused."""


class ChatGone(ChatError):
    """The channel or message is no longer there (HTTP 404)."""


class FileTooLarge(ChatError):
    """A file has more bytes than we read, whatever size Discord stated."""


class ChatUnavailable(ChatError):
    """Discord fails or limits us (429 after retries, 5xx, no connection), maybe for `after_s` seconds."""

    def __init__(self, text: str, *, after_s: float = 0.0) -> None:
        super().__init__(text)
        self.after_s = after_s
