"""What people take back leaves the archive: its rows, its index and its bytes, and nothing else does."""

from discoclaw.core.consent import UNLIMITED
from discoclaw.core.message import Place, Said
from discoclaw.core.policy import AutoSave
from discoclaw.core.purge import Purge, Words, terms_of
from discoclaw.search.archive import Archive, Put
from discoclaw.session.archiving import Archiving, Rules
from tests.memory.archives import InFile, sound, texts
from tests.memory.kit import NOW, Clock
from tests.memory.test_archive import ANN, BOB, US, files_with, found, in_dm, said, write
from tests.purging import from_ram

GENERAL = Place("channel", "55", "55", "general", private=False, group_name="general")


def taken_back(text: str, **given: object) -> Purge:
    words = Words(frozenset(terms_of(text)))
    return Purge(f"user-{ANN}", **{"at": NOW + 500, "words": words, "texts": (text,), **given})  # type: ignore[arg-type]


class TestWhatGoes:
    def test_the_persons_messages_with_the_words_and_the_answers_to_them(self, archive: Archive) -> None:
        answer = said(2, "Espresso is strong", US, by_us=True, to_id=ANN)
        other = said(3, "Espresso for me too", BOB)
        later = said(900, "Now I like espresso again")
        write(
            archive, Put(said(1, "I love espressos")), Put(answer), Put(other), Put(later), Put(said(4, "hi"))
        )
        assert archive.take_out(taken_back("espresso")) == 2
        assert texts(archive) == ["Espresso for me too", "hi", "Now I like espresso again"]
        sound(archive)
        assert archive.take_out(taken_back("espresso")) == 0

    def test_the_messages_it_rested_on_whatever_their_words(self, archive: Archive) -> None:
        write(archive, Put(said(1, "the black one, please")), Put(said(2, "the black one, please")))
        assert archive.take_out(taken_back("espresso", messages={"1": "55"})) == 1
        assert len(texts(archive)) == 1

    def test_a_word_in_another_form_or_language_is_found(self, archive: Archive) -> None:
        write(archive, Put(said(1, "I earn 70,000 here")), Put(said(2, "Die Gärten sind schön und groß")))
        assert archive.take_out(taken_back("70000")) == 1
        assert archive.take_out(taken_back("Ich habe die Gärten")) == 1
        assert texts(archive) == []

    def test_a_text_without_words_of_its_own_counts_as_a_whole(self, archive: Archive) -> None:
        write(archive, Put(said(1, "yes, I like it a lot")), Put(said(2, "I like tea")))
        assert archive.take_out(taken_back("x", words=Words(texts=frozenset({"i like it"})))) == 1
        assert texts(archive) == ["I like tea"]

    def test_a_word_that_is_used_all_the_time_counts_only_with_half_of_the_others(
        self, archive: Archive
    ) -> None:
        write(archive, *(Put(said(number, f"coffee at {number}")) for number in range(1, 31)))
        write(archive, Put(said(40, "coffee with oat milk")), Put(said(41, "a lot of cinnamon")))
        assert archive.take_out(taken_back("coffee oat milk cinnamon")) == 2
        assert len(texts(archive)) == 30

    def test_what_is_only_private_now_leaves_the_open(self, archive: Archive) -> None:
        thread = {"session_key": "discord:thread:77", "channel_id": "77"}
        write(
            archive,
            Put(said(1, "espresso in the channel")),
            Put(in_dm(2, "espresso in private")),
            Put(said(3, "espresso in a private thread", group_id="77", **thread)),
            Put(said(4, "espresso in an open thread", group_id="55", **thread)),
        )
        assert archive.take_out(taken_back("espresso", open_only=True)) == 2
        assert texts(archive) == ["espresso in private", "espresso in a private thread"]

    def test_who_wants_no_memory_takes_everything_back(self, archive: Archive) -> None:
        write(archive, Put(said(1, "espresso")), Put(said(2, "tea")), Put(said(3, "milk", BOB)))
        assert archive.take_out(taken_back("", everything=True)) == 2
        assert texts(archive) == ["milk"]


class TestTheBytes:
    def test_not_one_is_left_among_many_rows(self, in_file: InFile) -> None:
        noise = "lorem ipsum dolor sit amet consetetur sadipscing elitr sed diam nonumy eirmod"
        for start in range(0, 1000, 100):
            rows = (
                said(n, f"Zanzibarkanarie {n}" if n % 97 == 0 else f"{noise} {n}")
                for n in range(start, start + 100)
            )
            write(in_file, *map(Put, rows))
        assert in_file.take_out(taken_back("Zanzibarkanarie", at=NOW + 9_000)) == 11
        assert files_with(in_file.path.parent, "zanzibarkanarie") == []
        assert found(in_file, "zanzibarkanari") == []
        sound(in_file)

    def test_nor_in_a_damaged_file_that_was_kept(self, in_file: InFile) -> None:
        aside = in_file.path.with_name("archive.sqlite.corrupt-20260101T000000Z")
        aside.write_bytes(b"espresso")
        in_file.take_out(taken_back("espresso", open_only=True))
        write(in_file, Put(said(1, "tea")))
        in_file.take_out(taken_back("espresso"))
        assert not aside.exists()


class TestWhatWaits:
    async def test_is_never_written(self, archive: Archive) -> None:
        archiving = Archiving(archive, Rules(AutoSave(everywhere=True), 0, UNLIMITED), clock=Clock())
        await archiving.start()
        archiving.hear(Said("1", ANN, "Ann", "I love espresso", NOW), GENERAL, "discord:channel:55")
        archiving.hear(Said("2", ANN, "Ann", "I love tea", NOW), GENERAL, "discord:channel:55")
        assert from_ram(archiving, taken_back("espresso")).archived == 1
        await archiving.settle()
        assert texts(archive) == ["I love tea"]
        await archiving.close()
