"""A person's time zone: what they say it is, everywhere, and the server's until then."""

from dataclasses import replace
from datetime import UTC
from typing import Any

import pytest

from discoclaw.core.draft import Draft, Origin
from discoclaw.core.item import Facets, Item
from discoclaw.core.zones import KEY, now, own_zone, zone_named
from discoclaw.models.offline.model import OfflineModel
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_approval import says, whispered

BERLIN = "User's time zone is Europe/Berlin."


async def items(world: World) -> list[Item]:
    """What is remembered about Ann's time zone and in use."""
    view = await world.memory.view(f"user-{world.ann.id}")
    return [item for item in view.active() if item.facets.key == KEY]


async def learn(world: World, text: str, **changes: Any) -> None:
    """Extraction learns Ann's time zone in the open, or (`private`) in a DM."""
    origin = Origin("inferred", said_at=world._now(), **changes)

    def make(draft: Draft) -> None:
        draft.upsert("fact", text, origin, facets=Facets(key=KEY))

    await world.memory.change(f"user-{world.ann.id}", "learned from talk", make)


def there(world: World, name: str) -> str:
    """A zone as an answer names it, with its clock."""
    zone = zone_named(name)
    assert zone is not None
    return f"`{name}`, where it is now {now(world._now(), zone)}"


class TestWithoutAName:
    async def test_it_says_the_servers_zone_and_how_to_say_your_own(self, start: Start) -> None:
        async with start(timezone="Asia/Kolkata") as world:
            said = (
                f"I don't know your time zone, so I use the server's, {there(world, 'Asia/Kolkata')}; "
                "`!memory timezone <city>` sets yours."
            )
            assert await says(world, "timezone") == said
            assert (await whispered(world, "memory timezone")).content == said
            assert "(UTC+05:30)" in said
            assert await items(world) == []

    async def test_it_says_your_own_and_the_time_there(self, start: Start) -> None:
        async with start() as world:
            await says(world, "timezone berlin")
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Europe/Berlin')}."

    async def test_a_private_one_is_told_to_its_person_only(self, start: Start) -> None:
        async with start() as world:
            await learn(world, BERLIN, private=True)
            [item] = await items(world)
            said = await says(world, "timezone")
            assert said == (
                f"Your time zone is private, so here I use the server's, {there(world, 'UTC')}; "
                "to see yours, use `/memory timezone`."
            )
            own = (
                f"Your time zone is {there(world, 'Europe/Berlin')}.\n(private: I use it in our DMs only; "
                f"`!memory share {item.id.removeprefix('durable-')}` changes that)"
            )
            assert (await whispered(world, "memory timezone")).content == own
            assert await says(world, "timezone", privately=True) == own

    async def test_a_memory_that_names_no_zone_is_ignored(self, start: Start) -> None:
        async with start() as world:
            await learn(world, "User's time zone is that of the moon.")
            assert (await says(world, "timezone")).startswith(
                "I don't know your time zone, so I use the server's"
            )
            await says(world, "timezone berlin")
            assert [item.text for item in await items(world)] == [BERLIN]


class TestWithAName:
    @pytest.mark.parametrize("typed", ["berlin", "Europe/Berlin", " EUROPE/berlin "])
    async def test_it_is_remembered_as_what_the_person_stated(self, start: Start, typed: str) -> None:
        async with start() as world:
            assert await says(world, f"timezone {typed}") == (
                f"From now on your time zone is {there(world, 'Europe/Berlin')}. "
                "I use it everywhere, also outside our DMs. `!memory timezone off` forgets it."
            )
            [item] = await items(world)
            assert (item.text, item.facets.author, item.facets.sensitivity) == (BERLIN, "stated", "normal")
            assert "Your time zone is Europe/Berlin." in await says(world, "show")
            assert "by you, with a command" in await says(world, "history log")

    @pytest.mark.parametrize("rule", ["strict", "balanced", "open"])
    async def test_it_is_used_everywhere_also_when_it_is_said_in_a_dm(self, start: Start, rule: str) -> None:
        async with start(dm_privacy=rule) as world:
            assert "I use it everywhere" in await says(world, "timezone new york", privately=True)
            [commit] = (await world.memory.history(f"user-{world.ann.id}")).commits.values()
            assert [event.event_type for event in commit.events] == ["add"]  # it never was private
            own = own_zone(await items(world), in_dm=False)
            assert own is not None and str(own[1]) == "America/New_York"
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'America/New_York')}."

    async def test_a_private_one_is_used_everywhere_from_then_on(self, start: Start) -> None:
        async with start() as world:
            await learn(world, BERLIN, private=True)
            assert (await whispered(world, "memory timezone", name="Berlin")).content.startswith(
                "From now on"
            )
            [item] = await items(world)
            assert (item.facets.author, item.facets.sensitivity) == ("stated", "normal")

    async def test_another_name_changes_the_same_memory_in_one_change(self, start: Start) -> None:
        async with start() as world:
            await learn(world, BERLIN, private=True)
            [learned] = await items(world)
            commits = len((await world.memory.history(f"user-{world.ann.id}")).commits)
            await says(world, "timezone tokyo", privately=True)
            [item] = await items(world)
            assert (item.id, item.text) == (learned.id, "User's time zone is Asia/Tokyo.")
            assert len((await world.memory.history(f"user-{world.ann.id}")).commits) == commits + 1
            assert (await says(world, "timezone Tokyo")).startswith("Your time zone is already `Asia/Tokyo`")
            assert len((await world.memory.history(f"user-{world.ann.id}")).commits) == commits + 1

    async def test_undo_edit_and_forget_work_on_it(self, start: Start) -> None:
        async with start() as world:
            await says(world, "timezone berlin")
            await says(world, "timezone tokyo")
            await says(world, "undo")
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Europe/Berlin')}."
            await says(world, "edit timezone => User's time zone is Pacific/Chatham.")
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Pacific/Chatham')}."
            await says(world, "forget timezone")
            assert (await says(world, "timezone")).startswith("I don't know your time zone")
            await says(world, "timezone berlin")
            assert len(await items(world)) == 1

    async def test_two_that_personas_brought_together_become_one(self, start: Start) -> None:
        async with start() as world:
            await says(world, "remember I like tea")
            await says(world, "persona create coding")
            await says(world, "timezone berlin")
            await says(world, "persona switch coding")
            assert (await says(world, "timezone")).startswith("I don't know your time zone")
            await says(world, "timezone tokyo")
            assert "`!memory settle`" in await says(world, "persona merge main")
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Asia/Tokyo')}."
            await says(world, "timezone berlin")
            assert [item.text for item in await items(world)] == [BERLIN]
            assert await says(world, "settle") == "There is nothing to settle."

    async def test_two_that_replicas_brought_become_one(self, start: Start) -> None:
        async with start() as world:

            def make(draft: Draft) -> None:
                origin = Origin("stated", said_at=1)
                for name in ("Europe/Berlin", "Asia/Tokyo"):
                    item, _ = draft.upsert("fact", f"User lives by {name}.", origin)
                    keyed = replace(item, facets=replace(item.facets, key=KEY))
                    draft.set_item(item.id, keyed, parent=None, origin=origin)

            await world.memory.change(f"user-{world.ann.id}", "recovered", make)
            assert len(await items(world)) == 2
            await says(world, "timezone new york")
            assert [item.text for item in await items(world)] == ["User's time zone is America/New_York."]

    async def test_it_says_so_if_it_takes_the_place_of_the_oldest_memory(self, start: Start) -> None:
        async with start(max_items=1) as world:
            await says(world, "remember I like tea")
            assert "so I forgot the oldest" in await says(world, "timezone berlin")
            assert "so I forgot" not in await says(world, "timezone tokyo")
            assert len(await items(world)) == 1

    async def test_it_belongs_to_whoever_says_it(self, start: Start) -> None:
        async with start() as world:
            await says(world, "timezone berlin")
            await world.bob.send(world.general, "!memory timezone")
            assert world.answer(world.general).startswith("I don't know your time zone")


class TestAsPeopleNameIt:
    @pytest.mark.parametrize(
        ("typed", "name"),
        [
            ("Köln", "Europe/Berlin"),
            ("東京", "Asia/Tokyo"),
            ("Москва", "Europe/Moscow"),
            ("NYC", "America/New_York"),
            ("JST", "Asia/Tokyo"),
        ],
    )
    async def test_in_any_language_it_is_that_citys(self, start: Start, typed: str, name: str) -> None:
        async with start() as world:
            assert there(world, name) in await says(world, f"timezone {typed}")
            assert await says(world, "timezone") == f"Your time zone is {there(world, name)}."

    @pytest.mark.parametrize(
        ("typed", "name"), [("UTC+2", "UTC+02:00"), ("GMT-3", "UTC-03:00"), ("+05:30", "UTC+05:30")]
    )
    async def test_a_difference_from_utc_is_taken_and_its_flaw_told(
        self, start: Start, typed: str, name: str
    ) -> None:
        model = Scripted()
        async with start(model) as world:
            answer = await says(world, f"timezone {typed}")
            assert there(world, name) in answer and "no summer time" in answer
            await world.restart(model)
            await world.ann.send(world.general, "what time is it?")
            assert f"\nCurrent time:\n- now: {now(world._now(), zone_named(typed) or UTC)}" in model.prompt
            assert f"({name})" in model.prompt

    async def test_a_city_has_summer_time_so_nothing_is_told(self, start: Start) -> None:
        async with start() as world:
            assert "summer time" not in await says(world, "timezone Köln")
            assert "summer time" not in await says(world, "timezone utc")


class TestOff:
    @pytest.mark.parametrize("word", ["off", "None"])
    async def test_forgets_it_and_the_servers_counts(self, start: Start, word: str) -> None:
        async with start(timezone="Asia/Kolkata") as world:
            await says(world, "timezone berlin")
            said = f"I use the server's, {there(world, 'Asia/Kolkata')}."
            assert await says(world, f"timezone {word}") == f"Forgotten. From now on {said}"
            assert await items(world) == []
            assert await says(world, f"timezone {word}") == f"I don't know your time zone, so {said}"
            await says(world, "undo")
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Europe/Berlin')}."


class TestANameThatIsNone:
    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("berln", "I don't know which time zone “berln” is. Did you mean `Europe/Berlin`?"),
            (
                "west",
                "I don't know which time zone “west” is. Did you mean `Australia/West` or `Brazil/West`?",
            ),
            (
                "EST",
                "I don't know which time zone “EST” is. "
                "Did you mean `America/New_York` or `America/Jamaica`?",
            ),
            (
                "wonderland",
                "I don't know which time zone “wonderland” is. Name a large city that has the same time, "
                "for example Berlin or New York, or the difference from UTC, for example UTC+2.",
            ),
        ],
    )
    async def test_is_answered_with_what_could_be_meant(self, start: Start, typed: str, said: str) -> None:
        async with start() as world:
            assert await says(world, f"timezone {typed}") == said
            assert await items(world) == []

    @pytest.mark.parametrize("typed", ["../../etc/passwd", "/etc/localtime", "*@everyone* `x`", "x" * 1900])
    async def test_is_answered_shortly_whatever_it_says(self, start: Start, typed: str) -> None:
        async with start() as world:
            said = await says(world, f"timezone {typed}")
            assert said.startswith("I don't know which time zone “")
            assert len(said) < 350
            assert await items(world) == []


class TestWhatDiscordOffers:
    async def test_is_names_that_fit_and_the_servers_before_that(self, start: Start) -> None:
        async with start(timezone="Asia/Kolkata") as world:

            async def offered(typed: str) -> list[str]:
                found = await world.ann.autocomplete(world.general, "memory timezone", "name", typed)
                assert all(choice["name"] == choice["value"] for choice in found)
                return [choice["value"] for choice in found]

            assert await offered("") == ["Asia/Kolkata"]
            assert await offered("new y") == ["America/New_York"]
            assert await offered("berln") == ["Europe/Berlin"]
            assert await offered("münch") == ["Europe/Berlin"]
            assert await offered("cet") == ["Europe/Berlin", "Africa/Algiers"]
            assert len(await offered("a")) == 25
            assert await offered("x" * 6000) == []


class TestSomebodyWhoOptedOut:
    async def test_is_told_so_and_nothing_is_remembered(self, start: Start) -> None:
        async with start() as world:
            await says(world, "timezone berlin")
            await says(world, "data optout")
            assert (await says(world, "timezone tokyo")).startswith("You have opted out of memory")
            now_used = await says(world, "timezone")
            assert now_used.startswith("**You have opted out**") and "`UTC`" in now_used
            await says(world, "data optin")
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Europe/Berlin')}."


class TestSaidInTalk:
    async def test_it_is_used_though_nothing_gave_it_a_key(self, start: Start) -> None:
        async with start(OfflineModel()) as world:
            await world.ann.send(world.general, "My time zone is Asia/Tokyo.")
            await world.settle()
            assert await says(world, "timezone") == f"Your time zone is {there(world, 'Asia/Tokyo')}."

    async def test_it_is_replaced_by_a_command_and_forgotten_with_it(self, start: Start) -> None:
        async with start(OfflineModel()) as world:
            await world.ann.send(world.general, "My time zone is Asia/Tokyo.")
            await world.settle()
            await says(world, "timezone paris")
            assert [item.text for item in await items(world)] == ["User's time zone is Europe/Paris."]
            await says(world, "timezone off")
            assert await items(world) == []
