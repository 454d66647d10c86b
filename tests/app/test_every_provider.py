"""The whole bot with each provider of models: what people rely on holds with all of them."""

from discoclaw.app.usage import Usage
from discoclaw.core.budgets import limits_of
from tests.app.conftest import Start, World
from tests.app.providers import SUMMARY, Provider
from tests.attaching import picture


def on_disk(world: World) -> str:
    return "".join(path.read_text() for path in (world.folder / "data" / "memory").rglob("*.json"))


async def test_it_answers_learns_sums_up_remembers_when_told_and_sees_pictures(
    start: Start, provider: Provider
) -> None:
    async with start(**provider.settings(summary_every=1)) as world:
        await world.ann.send(world.general, "I prefer tabs")
        assert world.answer(world.general) == "All right."
        await world.settle()
        assert "User prefers tabs." in world.durable(world.ann).read_text()
        assert SUMMARY["summary"] in on_disk(world)
        await world.ann.send(world.general, "remember that I have a cat")
        assert "User has a cat." in world.durable(world.ann).read_text()
        await world.ann.send(world.general, "look", attachments=[("cat.png", picture())])
        await world.settle()
        assert ["image"] in [one.files for one in provider.server.requests if one.tools]
        found = await world.app.feature(Usage).accounts.calls(0)
    assert {one.purpose for one in found} >= {"answer", "extraction", "summary"}
    assert all(one.counted and one.usage.prompt_tokens and one.usage.output_tokens for one in found)


async def test_it_answers_after_a_restart_what_was_asked_meanwhile(start: Start, provider: Provider) -> None:
    async with start(**provider.settings(respond_mode="mention", extraction_enabled=False)) as world:
        me = f"<@{world.env.bot.user.id}>"
        await world.ann.send(world.general, f"{me} hello")

        def meanwhile() -> None:
            world.env.backend.create_message(world.general.id, world.ann.id, f"{me} what is new?")

        await world.restart(meanwhile=meanwhile)
        await world.settle()
        assert [one.prompt for one in provider.server.requests if one.prompt.endswith("what is new?")]
        assert world.answer(world.general) == "All right."


async def test_a_budget_holds_and_the_person_is_told(start: Start, provider: Provider) -> None:
    # A name with a dot, as servers elsewhere have: one on this machine costs nothing.
    address = provider.server.base_url.replace("127.0.0.1", "127.1")
    async with start(**provider.settings(address, budget=limits_of("0.0001/day"))) as world:
        await world.ann.send(world.general, "hello")
        assert world.answer(world.general) == "All right."
        await world.settle()
        asked = len(provider.server.requests)
        await world.ann.send(world.general, "hello again")
        assert "budget" in world.answer(world.general)
        assert len(provider.server.requests) == asked
