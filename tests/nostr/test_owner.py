"""What the owner signs counts, once; what anybody else signs, or sends again, does not."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discoclaw.core.consent import NEVER, Consent
from discoclaw.core.draft import Origin
from discoclaw.core.live import GLOBAL, NO_OVERRIDES, Scope, address
from discoclaw.core.message import Place
from discoclaw.core.policy import Policy
from discoclaw.core.profile import Profile
from discoclaw.core.subject import user_subject
from discoclaw.core.text import collapse
from discoclaw.memory.live import SIGNED, LiveConfig
from discoclaw.memory.subjects.store import Memory
from discoclaw.nostr.event import Event, Keys, redactor_of
from discoclaw.nostr.owner import MAX_NOTES, OwnerEvents, OwnerNotes, config_event, person_finder
from discoclaw.nostr.relays.paging import FetchResult
from discoclaw.nostr.relays.protocol import Filter
from discoclaw.nostr.schemas import Names
from tests.memory.kit import ANN, NOW, Clock, commits_of, heard, remember, texts

GOLDEN = json.loads((Path(__file__).parents[1] / "vectors" / "nostr.json").read_text(encoding="utf-8"))
OWNER = Keys.parse(GOLDEN["secret_key"])
BOT, STRANGER = Keys.parse("22" * 32), Keys.parse("33" * 32)
NAMES = Names(BOT)
NOW_S = NOW // 1000
APP = 30078
HOME = Place("channel", "9", "9", "general", private=False)
ANNS = f"snowclaw:memory:npub:{NAMES.user('123')[:32]}"


KEYS_OF_PREFERENCES = st.from_regex("[abcü][abcü1-]{0,7}", fullmatch=True)
VALUES = st.text("xyzéß -.", min_size=1, max_size=20).filter(lambda text: text == collapse(text).strip())


def signed(content: Any, d: str = address(GLOBAL), *, at: int = 0, by: Keys = OWNER, **tags: str) -> Event:
    """An event `at` seconds from now; what isn't a text is written as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    named = [[name, value] for name, value in tags.items()]
    return by.sign(APP, text, [["d", d], *named], NOW_S + at)


def sealed(content: Any, d: str, *, at: int = 0, by: Keys = OWNER) -> Event:
    """The same, encrypted to the bot."""
    return signed(by.seal(json.dumps(content), to=BOT.public), d, at=at, by=by, encrypted="nip44")


class Bot:
    """The parts of a bot that listen to the owner, on a real folder; `restarted` is a new process."""

    def __init__(self, root: Path, *, owner: str | None = OWNER.public, clock: Clock | None = None) -> None:
        self.root, self.clock, self.owner = root, clock or Clock(), owner
        self.opted_out: dict[str, int] = {}
        self.known = ["123", "456"]
        self.memory = Memory(root, clock=self.clock)
        self.memory.open()
        self.config = LiveConfig(root, clock=self.clock, names=NAMES)
        self.config.load()
        notes = OwnerNotes(
            self.memory,
            person_finder(lambda: self.known, NAMES),
            consent=Consent(
                lambda user_id: self.opted_out.get(user_id, NEVER),
                lambda user_id: self.memory.erased_at(user_subject(user_id)),
            ),
            redactor=redactor_of(BOT, owner=OWNER.public),
        )
        self.events = OwnerEvents(owner, BOT, self.config, notes)

    def restarted(self, *, forgetful: bool = False) -> "Bot":
        self.memory.close()
        if forgetful:
            (self.root / SIGNED).unlink(missing_ok=True)
        return Bot(self.root, owner=self.owner, clock=self.clock)

    async def mode(self) -> str:
        return self.config.policy(HOME, "7").respond_mode

    async def take(self, *events: Event) -> None:
        for event in events:
            await self.events.handle(event)


@pytest.fixture
def bot(tmp_path: Path) -> Iterator[Bot]:
    made = Bot(tmp_path / "memory")
    yield made
    made.memory.close()


class TestConfiguration:
    async def test_counts_at_once_in_every_form(self, bot: Bot) -> None:
        await bot.take(signed({"respond_mode": "all"}))
        assert bot.config.policy(HOME, "7") == Policy("all", 20, 20)
        await bot.take(signed("", at=1, respond_mode="owner", context_history="40"))
        assert bot.config.policy(HOME, "7") == Policy("owner", 40, 40)
        await bot.take(sealed({"context_history": 30}, f"snowclaw:config:group:{NAMES.channel('9')[:32]}"))
        await bot.take(signed({"respond_mode": "none"}, "snowclaw:config:npub:7"))
        assert bot.config.policy(HOME, "7") == Policy("none", 30, 30)
        await bot.take(signed({}, at=2))
        assert bot.config.policy(HOME, "8") == Policy("mention", 30, 30)

    @pytest.mark.design(340)
    @pytest.mark.parametrize("length", [16, 32, 64])
    async def test_names_people_and_channels_by_pseudonym(self, bot: Bot, length: int) -> None:
        await bot.take(signed({"respond_mode": "all"}, f"snowclaw:config:npub:{NAMES.user('7')[:length]}"))
        await bot.take(
            signed({"context_history": 7}, f"snowclaw:config:group:{NAMES.channel('9')[:length].upper()}")
        )
        assert bot.config.policy(HOME, "7") == Policy("all", 7, 7)
        assert bot.config.policy(HOME, "8") == Policy("mention", 7, 7)

    @pytest.mark.design(49)
    async def test_of_anybody_else_has_no_effect_and_is_not_even_an_error(
        self, bot: Bot, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bot.take(signed({"respond_mode": "all"}, by=STRANGER), signed({"respond_mode": "all"}, by=BOT))
        assert await bot.mode() == "mention"
        assert caplog.records == []
        assert not (bot.root / SIGNED).exists()

    async def test_without_an_owner_nobody_configures(self, bot: Bot, tmp_path: Path) -> None:
        alone = Bot(tmp_path / "other", owner=None)
        await alone.take(signed({"respond_mode": "all"}), signed({"respond_mode": "all"}, by=STRANGER))
        assert await alone.mode() == "mention"
        assert alone.events.filters == ()
        alone.memory.close()

    async def test_that_is_forged_is_dropped(self, bot: Bot, caplog: pytest.LogCaptureFixture) -> None:
        real = signed({"respond_mode": "owner"})
        for forged in (
            replace(real, content='{"respond_mode":"all"}'),
            replace(signed({"respond_mode": "all"}, by=STRANGER), pubkey=OWNER.public),
            replace(real, created_at=real.created_at + 1),
            replace(real, sig="0" * 128),
        ):
            await bot.take(forged)
        assert await bot.mode() == "mention"
        assert "dropped a forged event in the owner's name" in caplog.text
        await bot.take(real)
        assert await bot.mode() == "owner"

    async def test_that_is_old_or_comes_again_changes_nothing(self, bot: Bot) -> None:
        old, new = signed({"respond_mode": "all"}, at=-5), signed({"respond_mode": "owner"})
        await bot.take(old, new, old, new, old)
        assert await bot.mode() == "owner"
        bot = bot.restarted()
        await bot.take(old)
        assert await bot.mode() == "owner"
        bot.memory.close()

    async def test_of_two_of_one_second_the_lowest_id_wins(self, bot: Bot, tmp_path: Path) -> None:
        modes = {signed({"respond_mode": mode}): mode for mode in ("all", "owner", "none")}
        for order in (sorted(modes, key=lambda e: e.id), sorted(modes, key=lambda e: e.id, reverse=True)):
            other = Bot(tmp_path / order[0].id)
            await other.take(*order)
            assert await other.mode() == modes[min(modes, key=lambda event: event.id)]
            other.memory.close()

    @pytest.mark.parametrize(
        "wrong", [{"context_history": 201}, {"context_history": True}, {"respond_mode": "x"}]
    )
    async def test_out_of_bounds_is_refused_as_a_whole(
        self, bot: Bot, wrong: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        await bot.take(signed({"respond_mode": "owner", "context_history": 9}))
        await bot.take(signed({"respond_mode": "all", "context_history": 5} | wrong, at=1))
        assert bot.config.policy(HOME, "7") == Policy("owner", 9, 9)
        assert "cannot apply the owner's event" in caplog.text
        await bot.take(signed({"respond_mode": "none"}, at=1))
        assert await bot.mode() == "none"

    async def test_that_can_not_be_opened_is_not_taken_for_text(self, bot: Bot) -> None:
        theirs = OWNER.seal('{"respond_mode":"all"}', to=STRANGER.public)
        await bot.take(signed(theirs, encrypted="nip44"), signed(theirs))
        await bot.take(signed({"respond_mode": "all"}, encrypted="rot13"))
        await bot.take(signed({"respond_mode": "all"}, encrypted="nip44"))
        assert await bot.mode() == "mention"

    @pytest.mark.parametrize(
        "d",
        [
            "snowclaw:config:group:techteam",
            f"snowclaw:config:npub:{OWNER.npub}",
            "snowclaw:config:everything",
            "my-notes-app",
            "",
        ],
    )
    async def test_of_addresses_that_name_nothing_here_is_ignored(self, bot: Bot, d: str) -> None:
        await bot.take(signed({"respond_mode": "all"}, d))
        assert bot.config.overrides() == []

    async def test_of_another_kind_is_ignored(self, bot: Bot) -> None:
        await bot.take(OWNER.sign(30000, '{"respond_mode":"all"}', [["d", address(GLOBAL)]], NOW_S))
        assert await bot.mode() == "mention"

    async def test_of_the_future_is_refused(self, bot: Bot) -> None:
        await bot.take(signed({"respond_mode": "all"}, at=901), signed({"respond_mode": "owner"}))
        assert await bot.mode() == "owner"

    async def test_is_not_lost_when_the_bot_is_killed_before_it_was_written_down(self, bot: Bot) -> None:
        event = signed({"respond_mode": "all"})
        await bot.events._apply(event)
        assert await bot.mode() == "all"
        bot = bot.restarted()
        assert await bot.mode() == "mention"
        await bot.take(event)
        assert await bot.mode() == "all"
        bot.memory.close()


class StoredRelay:
    """A relay that has some events, and tells of more."""

    def __init__(self, *events: Event, broken: bool = False) -> None:
        self.events, self.broken = list(events), broken
        self.asked: list[tuple[Filter, ...]] = []
        self.send: Callable[[Event], Awaitable[None]] | None = None

    async def fetch(self, filters: Iterable[Filter]) -> FetchResult:
        self.asked.append(tuple(filters))
        return FetchResult(complete=not self.broken, reason="no connection" * self.broken, events=self.events)

    async def subscribe(
        self, filters: Iterable[Filter], handler: Callable[[Event], Awaitable[None]]
    ) -> object:
        self.asked.append(tuple(filters))
        self.send = handler
        return self


class TestRelays:
    async def test_are_asked_for_what_the_owner_signed_and_the_newest_counts(
        self, bot: Bot, caplog: pytest.LogCaptureFixture
    ) -> None:
        old, new = signed({"respond_mode": "all"}, at=-9), signed({"respond_mode": "owner"})
        relays = [
            StoredRelay(new, old),
            StoredRelay(broken=True),
            StoredRelay(old, signed({"respond_mode": "all"}, by=STRANGER)),
        ]
        assert await bot.events.catch_up(relays) == 2
        assert await bot.mode() == "owner"
        assert relays[0].asked == [(Filter(kinds=(APP,), authors=(OWNER.public,)),)]
        assert "cannot fetch all events of the owner: no connection" in caplog.text
        assert "owner" in (bot.root / SIGNED).read_text(encoding="utf-8")

    async def test_one_that_does_not_answer_holds_back_nothing_that_others_gave(self, bot: Bot) -> None:
        class Hanging(StoredRelay):
            async def fetch(self, filters: Iterable[Filter]) -> FetchResult:
                await asyncio.Event().wait()
                raise AssertionError

        asking = asyncio.create_task(
            bot.events.catch_up([Hanging(), StoredRelay(signed({"respond_mode": "all"}))])
        )
        async with asyncio.timeout(10):
            while await bot.mode() != "all":  # noqa: ASYNC110 - nobody tells when it holds
                await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert await bot.mode() == "all"

    async def test_are_not_asked_without_an_owner(self, tmp_path: Path) -> None:
        bot, relay = Bot(tmp_path / "memory", owner=None), StoredRelay(signed({"respond_mode": "all"}))
        assert await bot.events.catch_up([relay]) == 0
        await bot.events.follow([relay])
        assert (relay.asked, await bot.mode()) == ([], "mention")
        bot.memory.close()


class TestNotes:
    async def test_become_part_of_a_persons_memory_as_stated(self, bot: Bot) -> None:
        await bot.memory.change(ANN, "a test", remember("User has a cat."))
        note = {
            "notes": ["User leads the core team."],
            "preferences": {"language": "German"},
            "is_owner": True,
        }
        await bot.take(sealed(note, ANNS))
        items = list((await bot.memory.view(ANN)).active())
        assert [(item.kind, item.text, item.facets.key) for item in items] == [
            ("fact", "User has a cat.", None),
            ("fact", "User leads the core team.", None),
            ("preference", "language: German", "language"),
        ]
        assert {item.facets.author for item in items} == {"stated"}
        commit = commits_of(bot.memory)[-1]
        assert (commit.message, commit.metadata["by"]) == ("noted by the owner", "owner")

    @pytest.mark.parametrize(
        "content",
        [
            {"display_names": [["Ann", 1]], "first_seen": 1, "notes": ["A note."], "preferences": {}},
            {"hex_pubkey": "aa", "display_name": "Ann", "notes_json": '["A note."]'},
            {"notes_json": '{"notes":["A note."]}'},
            {"notes": ["A note.", " A  note. "], "preferences": None},
        ],
    )
    async def test_are_read_in_the_forms_that_are_written(self, bot: Bot, content: dict[str, Any]) -> None:
        await bot.take(signed(content, ANNS))
        assert await texts(bot.memory) == ["A note."]

    @pytest.mark.parametrize("name", ["123", *(NAMES.user("123")[:length] for length in (16, 32, 64))])
    async def test_name_a_person_by_id_or_pseudonym(self, bot: Bot, name: str) -> None:
        await bot.take(signed({"notes": ["A note."]}, f"snowclaw:memory:npub:{name}"))
        assert await texts(bot.memory) == ["A note."]

    @pytest.mark.parametrize("name", ["999", "1" * 32, OWNER.npub, "", "../123", NAMES.user("123")[:31]])
    async def test_about_somebody_unknown_make_no_memory_and_count_later(
        self, bot: Bot, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        event = signed({"notes": ["A note."]}, f"snowclaw:memory:npub:{name}")
        await bot.take(event)
        assert not (bot.root / "ledger").exists()
        assert "not known here" in caplog.text
        if name == "999":
            bot.known.append("999")
            await bot.take(event)
            assert await texts(bot.memory, "user-999") == ["A note."]

    async def test_of_anybody_else_or_of_ourselves_add_nothing(self, bot: Bot, tmp_path: Path) -> None:
        await bot.take(
            signed({"notes": ["A note."]}, ANNS, by=STRANGER), sealed({"notes": ["!"]}, ANNS, by=BOT)
        )
        assert await texts(bot.memory) == []
        own = Bot(tmp_path / "own", owner=BOT.public)
        await own.take(sealed({"notes": ["What we published ourselves."]}, ANNS, by=BOT))
        assert await texts(own.memory) == []
        own.memory.close()

    async def test_nothing_of_people_who_opted_out_nor_from_that_time_later(self, bot: Bot) -> None:
        event = signed({"notes": ["A note."]}, ANNS)
        for until in (10**15, NOW):
            bot.opted_out["123"] = until
            await bot.take(event)
        assert await texts(bot.memory) == []
        await bot.take(signed({"notes": ["A later note."]}, ANNS, at=1))
        assert await texts(bot.memory) == ["A later note."]

    async def test_from_before_an_erasing_do_not_come_back(self, bot: Bot) -> None:
        event = signed({"notes": ["A note."]}, ANNS, at=-5)
        await bot.take(event)
        await bot.memory.erase(ANN)
        bot = bot.restarted(forgetful=True)
        await bot.take(event)
        assert await texts(bot.memory) == []
        bot.memory.close()

    async def test_count_once_also_when_the_bot_was_killed_before_noting_that(self, bot: Bot) -> None:
        event = signed({"notes": ["A note."], "preferences": {"tone": "dry"}}, ANNS, at=-60)
        await bot.take(event)
        (made,) = commits_of(bot.memory)
        bot = bot.restarted(forgetful=True)
        await bot.take(event)
        assert commits_of(bot.memory) == (made,)
        bot.clock.forward(minutes=1)
        await bot.memory.change(
            ANN,
            "a test",
            lambda draft: [draft.remove(item, Origin("stated")) for item in [*draft.items.values()]],
        )
        bot = bot.restarted(forgetful=True)
        await bot.take(event)
        assert await texts(bot.memory) == []
        bot.memory.close()

    async def test_that_were_replaced_do_not_come_back(self, bot: Bot) -> None:
        old = signed({"preferences": {"tone": "dry"}}, ANNS, at=-9)
        new = signed({"preferences": {"tone": "warm"}}, ANNS, at=-1)
        await bot.take(old, new, old)
        assert await texts(bot.memory) == ["tone: warm"]
        bot = bot.restarted(forgetful=True)
        await bot.take(old)
        assert await texts(bot.memory) == ["tone: warm"]
        bot.memory.close()

    async def test_what_the_person_said_or_forgot_since_outranks_them(self, bot: Bot) -> None:
        bot.clock.forward(minutes=1)
        await bot.memory.change(ANN, "said", lambda d: d.upsert("preference", "tone: warm", Origin("stated")))
        await bot.memory.change(ANN, "said", remember("User left the team."))
        forget = lambda draft: draft.deprecate(  # noqa: E731
            next(item for item in draft.items.values() if "team" in item.text), Origin("stated")
        )
        await bot.memory.change(ANN, "forgot", forget)
        await bot.take(signed({"notes": ["User left the team."], "preferences": {"tone": "dry"}}, ANNS))
        assert await texts(bot.memory) == ["tone: warm", "tone: dry"]
        await bot.memory.change(
            ANN, "settled", lambda draft: draft.deprecate([*draft.items.values()][-1], Origin("stated"))
        )
        await bot.take(signed({"preferences": {"tone": "dry"}}, ANNS, at=1))
        assert await texts(bot.memory) == ["tone: warm"]

    async def test_outrank_what_was_only_inferred(self, bot: Bot) -> None:
        await bot.memory.change(ANN, "learned", remember("User likes tea.", "preference", heard()))
        await bot.take(
            signed({"notes": ["User left."], "preferences": {"user-likes-tea": "User likes tea."}}, ANNS)
        )
        assert await texts(bot.memory) == ["User likes tea.", "User left."]

    async def test_as_we_publish_them_change_nothing_when_they_come_back(self, bot: Bot) -> None:
        await bot.memory.change(ANN, "a test", remember("User works at Acme.", "project"))
        await bot.memory.change(ANN, "a test", remember("User prefers tabs.", "preference"))
        await bot.take(signed({"preferences": {"tone": "dry"}}, ANNS))
        before = commits_of(bot.memory)
        record = Profile().with_view(await bot.memory.view(ANN)).to_json()
        await bot.take(signed(record, ANNS, at=1), sealed(record, ANNS, at=2))
        assert commits_of(bot.memory) == before

    @given(st.dictionaries(KEYS_OF_PREFERENCES, VALUES, max_size=4))
    def test_of_preferences_are_published_as_they_were_noted_and_taken_once(
        self, preferences: dict[str, str]
    ) -> None:
        async def work(root: Path) -> None:
            bot = Bot(root)
            await bot.take(signed({"preferences": preferences}, ANNS))
            record = Profile().with_view(await bot.memory.view(ANN)).to_json()
            assert record["preferences"] == preferences
            before = (root / "ledger" / f"{ANN}.jsonl").read_bytes() if preferences else b""
            await bot.take(signed(record, ANNS, at=1))
            assert Profile().with_view(await bot.memory.view(ANN)).to_json() == record
            assert not preferences or (root / "ledger" / f"{ANN}.jsonl").read_bytes() == before
            bot.memory.close()

        with TemporaryDirectory() as folder:
            asyncio.run(work(Path(folder)))

    async def test_carry_no_secrets_into_memory(self, bot: Bot) -> None:
        secret = STRANGER.nsec()
        await bot.take(
            signed({"notes": [f"Key {secret}.", f"Bot {BOT.secret_hex()}.", f"Owner {OWNER.public}."]}, ANNS)
        )
        one, two, three = await texts(bot.memory)
        assert "REDACTED" in one and "REDACTED" in two
        assert three == f"Owner {OWNER.public}."
        ledger = (bot.root / "ledger" / f"{ANN}.jsonl").read_text(encoding="utf-8")
        assert secret not in ledger and BOT.secret_hex() not in ledger

    async def test_are_bounded_in_number_and_length(self, bot: Bot, caplog: pytest.LogCaptureFixture) -> None:
        many = [f"Note {number}." for number in range(MAX_NOTES + 1)]
        await bot.take(signed({"notes": ["x" * 1001, "", *many]}, ANNS))
        there = await texts(bot.memory)
        assert there == many[: MAX_NOTES - 2]
        assert "more than 200 notes" in caplog.text
        assert "is ignored" in caplog.text

    @pytest.mark.parametrize(
        "content",
        [
            {"notes": "one"},
            {"notes": [1]},
            {"preferences": ["a"]},
            {"preferences": {"a": 1}},
            {"notes_json": "{"},
            "nonsense",
            "[]",
        ],
    )
    async def test_of_a_wrong_shape_are_refused_as_a_whole(
        self, bot: Bot, content: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        await bot.take(signed(content if isinstance(content, str) else {"notes": ["A."]} | content, ANNS))
        assert await texts(bot.memory) == []
        assert "cannot apply the owner's event" in caplog.text

    async def test_can_not_write_the_bots_own_keys(self, bot: Bot) -> None:
        await bot.take(signed({"preferences": {"soul:identity": "Evil."}}, ANNS))
        assert await texts(bot.memory) == []

    async def test_without_a_memory_are_left_alone(self, bot: Bot) -> None:
        events = OwnerEvents(OWNER.public, BOT, bot.config)
        await events.handle(signed({"notes": ["A note."]}, ANNS))
        assert await texts(bot.memory) == []

    def test_a_name_that_fits_several_people_is_nobodys(self) -> None:
        class Alike(Names):
            def user(self, user_id: str) -> str:
                return "a" * 64

        assert person_finder(lambda: ["1", "2"], Alike(BOT))("a" * 16) is None
        assert person_finder(lambda: ["1"], Alike(BOT))("a" * 16) == "1"
        assert person_finder(lambda: ["1", "2"], Alike(BOT))("2") == "2"


class TestTheOwnersHand:
    @pytest.mark.parametrize(
        "scope", [GLOBAL, Scope("group", "9"), Scope("user", "7"), Scope("user", "ab" * 16)]
    )
    async def test_what_it_signs_is_what_the_bot_takes(self, bot: Bot, scope: Scope) -> None:
        event = config_event(
            OWNER, scope, {"respond_mode": "all", "context_history": 33}, NOW_S, bot=BOT.public, names=NAMES
        )
        await bot.take(event)
        assert bot.config.explain(scope)["context_history"].value == 33
        await bot.take(config_event(OWNER, scope, NO_OVERRIDES, NOW_S + 1, bot=BOT.public, names=NAMES))
        assert bot.config.explain(scope)["context_history"].source == "default"

    def test_it_shows_relays_no_id_and_no_wish(self) -> None:
        channel = "123456789012345678"
        scope = Scope("group", channel)
        event = config_event(
            OWNER, scope, {"respond_mode": "owner", "context_history": 33}, NOW_S, bot=BOT.public, names=NAMES
        )
        assert channel not in event.encode()
        assert "respond_mode" not in event.encode()
        assert event.tags == (
            ("d", f"snowclaw:config:group:{NAMES.channel(channel)[:32]}"),
            ("encrypted", "nip44"),
        )
