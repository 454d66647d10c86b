"""Voice messages: a transcription server turns them into words, if the settings name one."""

from typing import ClassVar, Final

from discoclaw.app.basics import Basics
from discoclaw.app.feature import Feature
from discoclaw.app.talk import Talking
from discoclaw.app.usage import Usage
from discoclaw.bot.client import DiscoClaw
from discoclaw.bot.files.download import Download
from discoclaw.bot.voice.voices import Limits, Voices
from discoclaw.core.errors import SettingsError
from discoclaw.core.ports import Transcriber
from discoclaw.core.seen import Seen
from discoclaw.settings import Settings
from discoclaw.usage.metered import MeteredTranscriber
from discoclaw.voice.http import HttpTranscriber
from discoclaw.voice.seen import VOICE, SeenTranscriber

SERVER: Final = "the transcription server"
WAY_OUT: Final = "look at the server, and at the settings DISCOCLAW_TRANSCRIBE_…"


class Voice(Feature):
    """Lets the client listen to voice messages. Without a server, people are told that it can't."""

    settings: ClassVar = (
        "transcribe_url",
        "transcribe_key",
        "transcribe_model",
        "transcribe_max_s",
        "transcribe_timeout_s",
    )

    def __init__(self, basics: Basics, client: DiscoClaw, usage: Usage, talking: Talking) -> None:
        settings, seen = basics.settings, Seen(basics.clock)
        limits = Limits(settings.transcribe_max_s, settings.transcribe_timeout_s)
        client.voices = Voices(
            client,
            talking.talk,
            Download(client, settings.discord_api),
            _metered(settings, usage, seen),
            limits,
            basics.redactor,
            clock=basics.clock,
        )
        self.services = (client.voices,)
        if settings.transcribe_url is not None:
            self.health = (lambda: [seen.finding(SERVER, VOICE, WAY_OUT, worst="warning")],)


def _metered(settings: Settings, usage: Usage, seen: Seen) -> Transcriber | None:
    """The same server, whose use is counted and whose answers are `seen`. Raises SettingsError."""
    transcriber = transcriber_of(settings)
    if transcriber is None:
        return None
    rates = usage.rates(settings.transcribe_url)
    seen_by = SeenTranscriber(transcriber, seen)
    return MeteredTranscriber(seen_by, usage.accounts, rates, settings.transcribe_model)


def transcriber_of(settings: Settings) -> Transcriber | None:
    """The transcription server of the settings, None if they name none. Raises SettingsError."""
    if settings.transcribe_url is None:
        return None
    key = settings.transcribe_key
    try:
        return HttpTranscriber(
            base_url=settings.transcribe_url,
            model=settings.transcribe_model,
            key=key.get_secret_value() if key is not None else None,
        )
    except ValueError as error:
        raise SettingsError(f"DISCOCLAW_TRANSCRIBE_URL=…: not an address ({error})") from None
