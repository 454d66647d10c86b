"""What people say is remembered, about them alone, and used in every place where they talk."""

from tests.contract.world import Start


class TestWhatSomebodySays:
    async def test_is_learned_and_used_in_another_channel(self, start: Start) -> None:
        async with start() as world:
            world.brain.learns("User's cat is called Ada.", about="cat")
            world.brain.says("Nice!", about="cat")
            assert await world.says(world.ann, world.general, "my cat is called Ada") == "Nice!"
            assert world.memories(world.ann) == ["User's cat is called Ada."]
            await world.says(world.ann, world.dev, "what is my cat called?")
            assert "User's cat is called Ada." in world.prompt
            await world.says(world.bob, world.dev, "what is my cat called?")
            assert "User's cat is called Ada." not in world.prompt

    async def test_outlives_a_restart(self, start: Start) -> None:
        async with start() as world:
            await world.remember(world.ann, "I like tea.")
            await world.restart()
            await world.says(world.ann, world.ann_dm, "do I like tea?")
            assert "I like tea." in world.prompt
            assert "tea" in world.cli("memory", "show", str(world.ann.id)).stdout
