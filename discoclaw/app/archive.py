"""The archive of talk. It also runs where archiving is off, to remove what was stored before.

Where there is an embedding provider, archived talk gets vectors.
"""

from typing import ClassVar

from discoclaw.app.basics import Basics
from discoclaw.app.disk import OnDisk
from discoclaw.app.feature import Feature
from discoclaw.app.finding import Finding
from discoclaw.core.autosave import AutoSave
from discoclaw.loops.talk_embedding import TalkEmbedding
from discoclaw.recall.talk import Meant
from discoclaw.search.archive_vectors import Provider
from discoclaw.search.talk_vectors import TalkVectors
from discoclaw.session.archive_rules import Rules
from discoclaw.session.archiving import Archiving
from discoclaw.session.meaning import Meaning
from discoclaw.session.talk_meaning import TalkMeaning


class Archived(Feature):
    """Archives what is said where an admin turned that on; `archiving` stores and searches it."""

    settings: ClassVar = ("auto_save", "hygiene_max_age_s", "embedding_talk_per_day")

    def __init__(self, basics: Basics, disk: OnDisk, finding: Finding) -> None:
        settings, storage = basics.settings, disk.storage
        saved = storage.places if storage.memory.disk.remembers else AutoSave()
        rules = Rules(saved, settings.hygiene_max_age_s * 1000, storage.consent)
        archive, meaning = storage.conversations.archive, finding.meaning
        if not isinstance(meaning, Meaning):
            self.archiving = Archiving(archive, rules, clock=basics.clock, processes=storage.processes)
            self.services = (self.archiving,)
        else:
            most = None if meaning.embedder.stays_here else settings.embedding_talk_per_day
            provider = Provider(meaning.embedder.name, meaning.embedder.stays_here, most)
            vectors = TalkVectors(archive, provider, consent=storage.consent)
            embedding = TalkEmbedding(
                meaning.embedder,
                vectors,
                clock=basics.clock,
                items=meaning.embedding,
                processes=storage.processes,
            )
            weights = Meant(text_weight=settings.text_weight, vector_weight=settings.vector_weight)
            of_talk = TalkMeaning(meaning, vectors, embedding, consent=storage.consent, weights=weights)
            self.archiving = Archiving(
                archive, rules, clock=basics.clock, meaning=of_talk, processes=storage.processes
            )
            self.services = (embedding, self.archiving)
        self.joins = (self.archiving,)
