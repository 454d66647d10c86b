"""A transcriber whose calls are noted: when it last answered, or why it didn't. Knows no server."""

from typing import Final

from discoclaw.core.errors import TranscriptionError, TranscriptionRefused
from discoclaw.core.ports import Transcriber
from discoclaw.core.seen import Seen
from discoclaw.jobs import step

VOICE: Final = "transcription"


class SeenTranscriber:
    """The port `Transcriber` around another one."""

    def __init__(self, transcriber: Transcriber, seen: Seen) -> None:
        self._transcriber = transcriber
        self._seen = seen

    async def words(self, audio: bytes, name: str, type: str, *, timeout_s: float) -> str:
        """Return what is said in a recording. Raises TranscriptionError."""
        step(timeout_s)
        try:
            words = await self._transcriber.words(audio, name, type, timeout_s=timeout_s)
        except TranscriptionRefused:  # just this recording
            self._seen.answered(VOICE)
            raise
        except TranscriptionError as error:
            self._seen.failed(VOICE, error)
            raise
        self._seen.answered(VOICE)
        return words

    async def close(self) -> None:
        """Close the other's connections."""
        await self._transcriber.close()
