"""`/settings` and `/model`: owners and admins of the server see how the bot is set up, and change it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import discord
import pytest

from tests.contract.cards import parts, said
from tests.contract.commands import refused
from tests.contract.live import edit, here, owned, signs, written
from tests.contract.world import GUILD_ID, Start, World
from tests.servers.messages_api import failure
from tests.servers.nostr_relay import LyingRelay

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
MANAGES = discord.Permissions(manage_guild=True, view_channel=True, send_messages=True)


@asynccontextmanager
async def ruled(start: Start, **changes: Any) -> AsyncIterator["Rule"]:
    """A world where Ann owns the bot, Cleo manages the server, and Bob does neither."""
    async with start(**{**QUIET, **changes}) as world:
        await world.restart(owners=frozenset({str(world.ann.id)}))
        role = world.guild.create_role("Managers", permissions=MANAGES)
        cleo = world.guild.add_member(world.env.create_user("cleo"), roles=[role])
        boss = world.guild.create_role("Everything", permissions=discord.Permissions(administrator=True))
        world.env.backend.add_member_role(world.guild.id, world.ann.id, boss.id)
        await world.settle()
        yield Rule(world, cleo, role)


class Rule:
    """What people do with the settings of a world; Cleo in #general unless another is named."""

    def __init__(self, world: World, cleo: Any, role: Any) -> None:
        self.world, self.cleo, self.role = world, cleo, role

    async def opens(self, who: Any = None, channel: Any = None) -> Any:
        shown = await (who or self.cleo).slash(channel or self.world.general, "settings")
        assert shown.ephemeral
        return shown.response

    async def picks(self, card: Any, value: Any, *, who: Any = None, kind: str = "settings") -> Any:
        """Somebody chooses in a menu of the card."""
        custom_id = next(one for one in ids(card) if one.startswith(f"{kind}:"))
        done = await (who or self.cleo).select(card, [value], custom_id=custom_id)
        card._message = self.world.env.backend.get_message(card.channel_id, card.id)
        return done

    async def sets(self, field: str, value: str, *, who: Any = None) -> Any:
        """Somebody opens the card, chooses a setting, and gives it a value."""
        card = await self.opens(who)
        await self.picks(card, field, who=who)
        if any(one.startswith("setting-type:") for one in ids(card)):
            form = await (who or self.cleo).click(card, label="Change…")
            return await (who or self.cleo).submit_modal(form, {"value": value})
        return await self.picks(card, value, who=who, kind="setting")

    async def forges(self, card: Any, custom_id: str) -> str:
        """Cleo sends a press that Discord's clients would not send; what she is told."""
        message = self.world.env.backend.get_message(card.channel_id, card.id)
        button = {"type": 2, "style": 2, "label": "x", "custom_id": custom_id}
        row = {"type": 1, "components": [button]}
        message.components.append(row)
        try:
            return refused(await self.cleo.click(card, custom_id=custom_id))
        finally:
            message.components.remove(row)


def ids(card: Any) -> list[str]:
    """The custom ids of everything on a card."""
    return [part["custom_id"] for part in parts(card) if "custom_id" in part]


class TestTheCard:
    async def test_shows_each_setting_with_its_value_and_where_it_comes_from(self, start: Start) -> None:
        async with LyingRelay() as relay, ruled(start, context_history=12, **owned(relay)) as rule:
            world = rule.world
            edit(world, {"global": {"receipts": True}})
            await signs(world, relay, here(world), "respond_mode=all")
            card = await rule.opens()
            lines = said(card).splitlines()
            after = {one: lines[i + 1] for i, one in enumerate(lines[:-1])}
            assert f"### Settings of <#{world.general.id}>" in lines
            assert after["**When I answer**: every message"] == "-# signed by the owner"
            assert after["**Messages I look back on**: 12"] == "-# from `DISCOCLAW_CONTEXT_HISTORY`"
            assert after["**Receipts**: on"] == "-# set in `config.json`, for everywhere"
            assert after["**Model**: sonnet (claude-sonnet-5-5)"] == after["**Archive**: off"] == "-# default"
            assert after["**Listen here**: on"] == after["**Persona**: none"] == "-# default"
            assert "Privacy of direct messages" not in said(card)
            await rule.picks(card, "respond_mode")
            signed = "The owner has signed this with their key, so it can't be changed here."
            assert signed in said(card)
            assert [one.partition(":")[0] for one in ids(card)] == ["settings-in"]
            unset = f"setting-unset:{rule.cleo.id}:{world.general.id}:respond_mode"
            assert "signed this" in await rule.forges(card, unset)
            assert written(world) == {"global": {"receipts": True}}
            await signs(world, relay, "global", "approve=true")
            everywhere = await rule.opens(world.ann)
            await world.ann.click(everywhere, label="Everywhere")
            everywhere._message = world.env.backend.get_message(everywhere.channel_id, everywhere.id)
            await rule.picks(everywhere, "approve", who=world.ann)
            assert "`discoclaw config set global approve=…` signs another." in said(everywhere)

    async def test_says_who_changed_what_and_takes_it_back(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with ruled(start, respond_mode="mention") as rule:
            world, place, cleo = rule.world, here(rule.world), rule.cleo
            await rule.sets("respond_mode", "all")
            assert written(world)[place] == {"respond_mode": "all"}
            card = await rule.opens()
            assert f"set by <@{cleo.id}> <t:" in said(card)
            assert f"cleo ({cleo.id}) set respond_mode for {place}: None → 'all'" in caplog.text
            await world.says(world.ann, world.general, "not to you")
            assert len(world.turns()) == 1
            await rule.picks(card, "respond_mode")
            await cleo.click(card, label="Use the default")
            assert "When I answer is the default again." in said(card) and place not in written(world)
            assert f"set respond_mode for {place}: 'all' → None" in caplog.text
            await world.says(world.ann, world.general, "not to you")
            assert len(world.turns()) == 1
            theirs, mine = await rule.opens(), await rule.opens(world.ann)
            await rule.picks(theirs, "receipts")
            await rule.picks(mine, "receipts", who=world.ann)
            await rule.picks(theirs, "on", kind="setting")
            await rule.picks(mine, "off", who=world.ann, kind="setting")
            assert written(world)[place] == {"receipts": False}
            assert f"({world.ann.id}) set receipts for {place}: True → False" in caplog.text
            card = await rule.opens()
            assert f"set by <@{world.ann.id}>" in said(card)
            await rule.picks(card, "receipts")
            await rule.picks(card, "off", kind="setting")
            assert "That's what it is already." in said(card)
            edit(world, {place: {"receipts": True}})  # by hand, so nobody is named
            assert "**Receipts**: on\n-# set in `config.json`" in said(await rule.opens())

    async def test_outlives_a_restart_with_its_menus_and_an_open_form(self, start: Start) -> None:
        wild = ("# *big* <@1> " * 160)[:2000].strip()
        async with ruled(start) as rule:
            card = await rule.opens()
            await rule.picks(card, "prompt")
            form = await rule.cleo.click(card, label="Change…")
            await rule.world.restart()
            await rule.cleo.submit_modal(form, {"value": wild})
            assert written(rule.world)[here(rule.world)] == {"prompt": wild}
            await rule.world.restart()
            card = await rule.opens()
            await rule.picks(card, "prompt")
            assert "\\# \\*big\\* " in said(card) and f"set by <@{rule.cleo.id}>" in said(card)
            form = await rule.cleo.click(card, label="Change…")
            (box,) = [one["component"] for one in form.modal["components"] if "component" in one]
            assert (box["value"], box["max_length"]) == (wild, 2000)

    async def test_goes_to_another_channel_and_a_thread_has_those_of_its_channel(self, start: Start) -> None:
        async with ruled(start) as rule:
            world = rule.world
            card = await rule.opens()
            await rule.picks(card, world.dev, kind="settings-of")
            assert f"### Settings of <#{world.dev.id}>" in said(card)
            await rule.picks(card, "receipts")
            await rule.picks(card, "on", kind="setting")
            assert written(world) == {"version": 1, f"group:{world.dev.id}": {"receipts": True}}
            channel = world.env.bot.get_channel(world.general.id)
            assert isinstance(channel, discord.TextChannel)
            made = await channel.create_thread(name="a thread", type=discord.ChannelType.public_thread)
            await world.env.settle()
            thread = next(one for one in world.general.threads if one.id == made.id)
            assert f"### Settings of <#{world.general.id}>" in said(await rule.opens(channel=thread))

    async def test_says_where_messages_are_kept(self, start: Start) -> None:
        states = {"all": "on", f"{GUILD_ID} dm": f"on for direct messages, server {GUILD_ID}"}
        async with ruled(start) as rule:
            for saved, state in states.items():
                await rule.world.restart(auto_save=saved)
                shown = (await rule.world.ann.user.slash("settings")).response
                assert f"**Archive**: {state}\n" in said(shown), saved
            await rule.world.restart(auto_save="all", store="none")
            assert "**Archive**: off, because nothing is stored here" in said(await rule.opens())


class TestWhoMay:
    async def test_owners_change_what_applies_everywhere_and_admins_do_not(self, start: Start) -> None:
        async with ruled(start) as rule:
            ann = rule.world.ann
            card = (await ann.user.slash("settings")).response
            assert "## Settings for everywhere" in said(card)
            await rule.picks(card, "dm_privacy", who=ann.user)
            await rule.picks(card, "strict", who=ann.user, kind="setting")
            assert written(rule.world)["global"] == {"dm_privacy": "strict"}
            assert "**Privacy of direct messages**: everything stays in the DM" in said(card)
            only = "Only my owners can change what applies everywhere"
            assert only in (await rule.cleo.user.slash("settings")).response.content
            card = await rule.opens()
            assert "settings-in:" not in "".join(ids(card))
            assert only in await rule.forges(card, f"settings-in:{rule.cleo.id}:0")
            other = rule.world.env.create_guild("Other").create_text_channel("theirs")
            await rule.world.settle()
            for channel in (rule.world.hidden.id, other.id, 12345):
                assert "channel" in await rule.forges(card, f"settings-in:{rule.cleo.id}:{channel}")
            unset = f"setting-unset:{ann.id}:{rule.world.general.id}:model"
            assert await rule.forges(card, unset) == "These buttons are for somebody else."

    async def test_others_are_not_even_offered_it_and_who_lost_the_right_is_told(self, start: Start) -> None:
        async with ruled(start) as rule:
            world, card = rule.world, await rule.opens()
            offered = world.bob.available_commands(world.general)
            assert not {"settings", "model"} & set(offered)
            commands = await world.env.bot.tree.fetch_commands()
            command = next(one for one in commands if one.name == "settings")
            world.guild.set_command_permissions(command, {world.bob: True})
            shown = await world.bob.slash(world.general, "settings")
            no = "Only my owners and people who can manage this server can change its settings."
            assert shown.response.content == no
            world.env.backend.remove_member_role(world.guild.id, rule.cleo.id, rule.role.id)
            await world.settle()
            assert "people who can manage this server" in refused(await rule.picks(card, "respond_mode"))
            world.env.backend.add_member_role(world.guild.id, rule.cleo.id, rule.role.id)
            await world.restart(allow_roles=frozenset(), allow_users=frozenset({str(world.bob.id)}))
            shown = await rule.cleo.slash(world.general, "settings")
            assert shown.response.content.startswith("You aren't on my allowlist.")
            assert refused(await rule.picks(card, "model")).startswith("You aren't on my allowlist.")
            kind = f"setting-type:{rule.cleo.id}:{world.general.id}:prompt"
            assert (await rule.forges(card, kind)).startswith("You aren't on my allowlist.")
            assert written(world) == {}


class TestWhatGoesWrong:
    async def test_what_cannot_be_is_told_and_not_written(self, start: Start) -> None:
        number = "“Messages I look back on” must be a whole number from 1 to 200."
        model = "“Model” must be the name of a model, such as sonnet."
        async with ruled(start) as rule:
            for field, wrong, told in (
                ("context_history", "999", number),
                ("model", "two words", model),
                ("persona", "head", "“Persona” must be a name of up to 32 letters and digits."),
                ("prompt", "a\x00b", "“Instructions” must be a text of 1 to 2000 characters."),
            ):
                assert told in refused(await rule.sets(field, wrong)), wrong
            card = await rule.opens()
            for field in ("loudness", "dm_privacy"):
                unset = f"setting-unset:{rule.cleo.id}:{rule.world.general.id}:{field}"
                assert await rule.forges(card, unset) == "There is no such setting here any more."
            assert written(rule.world) == {}

    async def test_a_damaged_file_is_named_and_kept_and_a_full_disk_is_told(
        self, start: Start, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with ruled(start) as rule:
            path = rule.world.data / "memory" / "config.json"
            path.mkdir()  # which nothing can be written to
            assert "so nothing has changed" in refused(await rule.sets("receipts", "on"))
            path.rmdir()
            assert "**Receipts**: off" in said(await rule.opens())
            path.write_text('{"global": {"receipts": "often"}}', encoding="utf-8")
            assert refused(await rule.sets("receipts", "on")) == (
                "`config.json` makes no sense: receipts must be true or false, not 'often'. So nothing has "
                "changed; whoever runs me has to correct it first."
            )
            assert path.read_text(encoding="utf-8") == '{"global": {"receipts": "often"}}'

    @pytest.mark.parametrize("record", ["whole", "damaged", "newer"])
    async def test_who_changed_something_is_forgotten_with_them(self, start: Start, record: str) -> None:
        async with ruled(start) as rule:
            path = rule.world.data / "memory" / "changed.json"
            newer = f'{{"version": 2, "who": ["{rule.cleo.id}"]}}'
            if record == "newer":
                path.write_text(newer, encoding="utf-8")
            await rule.sets("receipts", "on")
            assert str(rule.cleo.id) in path.read_text(encoding="utf-8")
            if record == "damaged":
                path.write_bytes(path.read_bytes()[:-3])
                await rule.world.restart()
            answer = await rule.world.says(rule.cleo, rule.world.general, "!memory erase --yes")
            assert written(rule.world)[here(rule.world)] == {"receipts": True}
            if record == "newer":  # which this version can't read, and says so
                assert "couldn't be removed yet" in answer
                assert path.read_text(encoding="utf-8") == newer
                return
            assert str(rule.cleo.id) not in path.read_text(encoding="utf-8")
            assert "**Receipts**: on\n-# set in `config.json`" in said(await rule.opens())


class TestTheModel:
    async def test_of_a_channel_or_of_everywhere_is_shown_and_set(self, start: Start) -> None:
        async with ruled(start) as rule:
            world, place = rule.world, rule.world.general

            async def model(who: Any = rule.cleo, **name: str) -> str:
                return (await who.slash(place, "model", **name)).response.content

            assert (await model()).startswith(f"sonnet (claude-sonnet-5-5) answers in <#{place.id}>.")
            assert await model(name="llama3.2:8b") == f"llama3.2:8b now answers in <#{place.id}>."
            for channel in (place, world.dev):
                await world.says(world.ann, channel, "hello")
            assert [one.body["model"] for one in world.turns()[-2:]] == ["llama3.2:8b", "claude-sonnet-5-5"]
            done = await world.ann.user.slash("model", name="opus")
            assert done.response.content.endswith(" now answers everywhere.")
            assert written(world)["global"] == {"model": "opus"}
            no = (await rule.cleo.user.slash("model", name="opus")).response.content
            assert "Only my owners" in no
            for typed, offered in (("son", "sonnet"), ("qwen3", "qwen3")):
                choices = await rule.cleo.autocomplete(place, "model", "name", typed)
                assert [one["value"] for one in choices] == [offered]

    async def test_that_the_server_does_not_have_is_told_when_it_is_chosen_and_later(
        self, start: Start
    ) -> None:
        async with ruled(start) as rule:
            world, lost = rule.world, failure(404, "not_found_error", "model: nosuch")
            world.server.script(lost)
            told = (await rule.cleo.slash(world.general, "model", name="nosuch")).response.content
            keep = "The server doesn't give me the model `nosuch`, so I keep the one there is."
            assert told.startswith(keep) and written(world) == {}
            await rule.cleo.slash(world.general, "model", name="brief")
            world.brain.usual = lost
            answer = await world.says(world.ann, world.general, "hello")
            assert "doesn't have the model `brief`, which was chosen for here" in answer
            assert "`/model`" in answer
            assert "the model I'm set up with" in await world.says(world.ann, world.dev, "hello")

    async def test_that_answers_offline_is_named_as_what_it_is(self, start: Start, tmp_path: Path) -> None:
        async with ruled(start, base_url=None, model_provider="offline") as rule:
            place = rule.world.general
            shown = (await rule.cleo.slash(place, "model")).response.content
            assert shown.startswith(f"the offline model answers in <#{place.id}>.") and "sonnet" not in shown
            assert "**Model**: the offline model\n" in said(await rule.opens())
            done = (await rule.cleo.slash(place, "model", name="opus")).response.content
            assert done == f"the offline model now answers in <#{place.id}>."
