"""`/settings` and `/model`: owners and admins of the server see the live configuration and change it."""

import errno
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
import simcord.components

from discoclaw.core.errors import ModelNotFound, ModelUnreachable
from discoclaw.core.live import GLOBAL, Scope
from discoclaw.memory.disk.plain import FileDocuments
from discoclaw.memory.live import FILE
from tests.app.conftest import Start, World
from tests.app.models import Scripted
from tests.app.test_live_config import Hand, edit

QUIET: dict[str, Any] = {"extraction_enabled": False, "summary_enabled": False}
MANAGES = discord.Permissions(manage_guild=True, view_channel=True, send_messages=True)


@asynccontextmanager
async def ruled(start: Start, model: Any = None, **changes: Any) -> AsyncIterator["Rule"]:
    """A world where Ann owns the bot, Cleo manages the server, and Bob does neither."""
    async with start(model or Scripted(), **{**QUIET, **changes}) as world:
        await world.restart(owners=frozenset({str(world.ann.id)}))
        role = world.guild.create_role("Managers", permissions=MANAGES)
        cleo = world.guild.add_member(world.env.create_user("cleo"), roles=[role])
        boss = world.guild.create_role("Everything", permissions=discord.Permissions(administrator=True))
        world.env.backend.add_member_role(world.guild.id, world.ann.id, boss.id)
        await world.settle()
        yield Rule(world, cleo, role)


class Rule:
    """What the people do with the settings of a world, and what they see."""

    def __init__(self, world: World, cleo: Any, role: Any) -> None:
        self.world, self.cleo, self.role = world, cleo, role

    async def opens(self, who: Any = None, channel: Any = None) -> Any:
        """Somebody opens the card; Cleo unless another is named."""
        shown = await (who or self.cleo).slash(channel or self.world.general, "settings")
        assert shown.ephemeral
        return shown.response

    async def picks(self, card: Any, *, who: Any = None, kind: str = "settings", value: Any) -> Any:
        """Somebody chooses in a menu, and sees the card that comes of it."""
        custom_id = self.id_of(card, kind)
        return await (who or self.cleo).select(card, [value], custom_id=custom_id)

    async def sets(self, field: str, value: str, *, who: Any = None, channel: Any = None) -> Any:
        """Somebody opens the card, chooses a setting, and gives it a value."""
        card = await self.opens(who, channel)
        await self.picks(card, who=who, value=field)
        shown = self.fresh(card)
        if any(one.startswith("setting-type:") for one in ids(shown)):
            opened = await (who or self.cleo).click(shown, label="Change…")
            return await (who or self.cleo).submit_modal(opened, {"value": value})
        return await self.picks(shown, who=who, kind="setting", value=value)

    def fresh(self, card: Any) -> Any:
        """The card as its message is now."""
        card._message = self.world.env.backend.get_message(card.channel_id, card.id)
        return card

    @staticmethod
    def id_of(card: Any, kind: str) -> str:
        return next(one for one in ids(card) if one.startswith(f"{kind}:"))

    def of(self, kind: str, field: str) -> str:
        """The custom id of a control of Cleo's for a field of the channel."""
        return f"{kind}:{self.cleo.id}:{self.world.general.id}:{field}"

    def written(self) -> dict[str, Any]:
        path = self.world.folder / "data" / "memory" / FILE
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    @property
    def here(self) -> str:
        return f"group:{self.world.general.id}"


def ids(card: Any) -> list[str]:
    """The custom ids of everything on a card."""
    parts = simcord.components.walk_components(card.components)
    return [part["custom_id"] for part in parts if "custom_id" in part]


def text(card: Any) -> str:
    """What a card says."""
    parts = simcord.components.walk_components(card.components)
    return "\n".join(part["content"] for part in parts if part["type"] == 10)


def said(done: Any) -> str:
    """What is said below a press, to the one who pressed."""
    return "\n".join(one.content for one in done.followups)


class TestTheCard:
    async def test_shows_each_setting_with_its_value_and_where_it_comes_from(self, start: Start) -> None:
        async with ruled(start, context_history=12) as rule:
            edit(rule.world, {"global": {"receipts": True}})
            await Hand(rule.world).signs(Scope("group", str(rule.world.general.id)), respond_mode="all")
            card = await rule.opens()
            lines = text(card).splitlines()
            after = {one: lines[i + 1] for i, one in enumerate(lines[:-1])}
            assert f"### Settings of <#{rule.world.general.id}>" in lines
            assert after["**When I answer**: every message"] == "-# signed by the owner"
            assert after["**Messages I look back on**: 12"] == "-# from `DISCOCLAW_CONTEXT_HISTORY`"
            assert after["**Receipts**: on"] == "-# set in `config.json`, for everywhere"
            assert after["**Model**: sonnet"] == after["**Archive**: off"] == "-# default"
            assert after["**Listen here**: on"] == after["**Persona**: none"] == "-# default"
            assert "Privacy of direct messages" not in text(card)

    async def test_says_who_changed_what_and_takes_it_back(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with ruled(start, respond_mode="mention") as rule:
            done = await rule.sets("respond_mode", "all")
            assert rule.written()[rule.here] == {"respond_mode": "all"}
            card = rule.fresh(await rule.opens())
            assert f"set by <@{rule.cleo.id}> <t:" in text(card)
            assert f"cleo ({rule.cleo.id}) set respond_mode for {rule.here}: None → 'all'" in caplog.text
            await rule.world.ann.send(rule.world.general, "not to you")
            assert len(rule.world.model.requests) == 1
            await rule.picks(card, value="respond_mode")
            await rule.cleo.click(rule.fresh(card), label="Use the default")
            assert "When I answer is the default again." in text(rule.fresh(card))
            assert rule.here not in rule.written()
            assert f"set respond_mode for {rule.here}: 'all' → None" in caplog.text
            await rule.world.ann.send(rule.world.general, "not to you")
            assert len(rule.world.model.requests) == 1
            assert done.acknowledged

    async def test_outlives_a_restart_with_its_menus_and_an_open_modal(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            await rule.picks(card, value="prompt")
            opened = await rule.cleo.click(rule.fresh(card), label="Change…")
            await rule.world.restart()
            await rule.cleo.submit_modal(opened, {"value": "Answer in French."})
            assert rule.written()[rule.here] == {"prompt": "Answer in French."}
            await rule.world.restart()
            await rule.picks(rule.fresh(card), value="prompt")
            assert "Answer in French." in text(rule.fresh(card))
            assert f"set by <@{rule.cleo.id}>" in text(card)

    async def test_a_thread_has_the_settings_of_its_channel(self, start: Start) -> None:
        async with ruled(start) as rule:
            world = rule.world
            channel = world.env.bot.get_channel(world.general.id)
            assert isinstance(channel, discord.TextChannel)
            made = await channel.create_thread(name="a thread", type=discord.ChannelType.public_thread)
            await world.env.settle()
            thread = next(one for one in world.general.threads if one.id == made.id)
            assert f"### Settings of <#{world.general.id}>" in text(await rule.opens(channel=thread))

    async def test_goes_to_another_channel(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            await rule.picks(card, kind="settings-of", value=rule.world.dev)
            assert f"### Settings of <#{rule.world.dev.id}>" in text(rule.fresh(card))
            await rule.picks(rule.fresh(card), value="receipts")
            await rule.picks(rule.fresh(card), kind="setting", value="on")
            assert rule.written() == {"version": 1, f"group:{rule.world.dev.id}": {"receipts": True}}


class TestWhoMay:
    async def test_owners_change_what_applies_everywhere_in_a_dm_too(self, start: Start) -> None:
        async with ruled(start) as rule:
            ann = rule.world.ann
            shown = await ann.user.slash("settings")
            card = shown.response
            assert "## Settings for everywhere" in text(card)
            await ann.user.select(card, ["dm_privacy"], custom_id=rule.id_of(card, "settings"))
            card = rule.fresh(card)
            await ann.user.select(card, ["strict"], custom_id=rule.id_of(card, "setting"))
            assert rule.written()["global"] == {"dm_privacy": "strict"}
            assert "**Privacy of direct messages**: everything stays in the DM" in text(rule.fresh(card))

    async def test_owners_reach_what_applies_everywhere_from_a_channel(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens(rule.world.ann)
            await rule.world.ann.click(card, label="Everywhere")
            assert "## Settings for everywhere" in text(rule.fresh(card))
            assert "settings-in:" not in "".join(ids(await rule.opens()))

    async def test_admins_of_a_server_do_not(self, start: Start) -> None:
        async with ruled(start) as rule:
            shown = await rule.cleo.user.slash("settings")
            assert "Only my owners can change what applies everywhere" in shown.response.content
            card = await rule.opens()
            forged = FakeMenu(card, f"settings-in:{rule.cleo.id}:0")
            done = await forged.pressed_by(rule.cleo)
            assert "Only my owners can change what applies everywhere" in said(done)
            assert rule.written() == {}

    async def test_others_are_not_even_offered_it(self, start: Start) -> None:
        async with ruled(start) as rule:
            offered = rule.world.bob.available_commands(rule.world.general)
            assert not {"settings", "model"} & set(offered)
            commands = await rule.world.env.bot.tree.fetch_commands()
            command = next(one for one in commands if one.name == "settings")
            rule.world.guild.set_command_permissions(command, {rule.world.bob: True})
            shown = await rule.world.bob.slash(rule.world.general, "settings")
            assert shown.response.content == (
                "Only my owners and people who can manage this server can change its settings."
            )

    async def test_who_is_not_on_the_allowlist_changes_nothing_whatever_they_manage(
        self, start: Start
    ) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            allowed = frozenset({str(rule.world.bob.id)})
            await rule.world.restart(allow_roles=frozenset(), allow_users=allowed)
            shown = await rule.cleo.slash(rule.world.general, "settings")
            assert shown.response.content.startswith("You aren't on my allowlist.")
            done = await rule.picks(card, value="model")
            assert said(done).startswith("You aren't on my allowlist.")
            done = await FakeMenu(card, rule.of("setting-type", "prompt")).pressed_by(rule.cleo)
            assert done.response.content.startswith("You aren't on my allowlist.")

    async def test_somebody_who_lost_the_right_since_is_told(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            rule.world.env.backend.remove_member_role(rule.world.guild.id, rule.cleo.id, rule.role.id)
            await rule.world.settle()
            done = await rule.picks(card, value="respond_mode")
            assert "people who can manage this server" in said(done)
            assert "## Settings of" in text(rule.fresh(card))

    async def test_not_for_channels_they_cannot_see_or_that_are_gone(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            other = rule.world.env.create_guild("Other").create_text_channel("theirs")
            await rule.world.settle()
            for channel in (rule.world.hidden.id, other.id, 12345):
                done = await FakeMenu(card, f"settings-in:{rule.cleo.id}:{channel}").pressed_by(rule.cleo)
                assert "channel" in said(done)
            assert f"<#{rule.world.hidden.id}>" not in text(rule.fresh(card))

    async def test_nobody_presses_anothers_card(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            card = await rule.opens()
            forged = FakeMenu(card, f"setting-unset:{rule.world.ann.id}:{rule.world.general.id}:model")
            done = await forged.pressed_by(rule.cleo)
            assert done.response.content == "These buttons are for somebody else."


class FakeMenu:
    """A press that Discord's clients would not send, on a message that is there."""

    def __init__(self, card: Any, custom_id: str) -> None:
        self.card, self.custom_id = card, custom_id

    async def pressed_by(self, who: Any) -> Any:
        message = who._env.backend.get_message(self.card.channel_id, self.card.id)
        row = {"type": 1, "components": [{"type": 2, "style": 2, "label": "x", "custom_id": self.custom_id}]}
        message.components.append(row)
        try:
            return await who.click(self.card, custom_id=self.custom_id)
        finally:
            message.components.remove(row)


class TestWhatTheOwnerSigned:
    async def test_cannot_be_changed_on_the_card_which_says_so(self, start: Start) -> None:
        async with ruled(start) as rule:
            await Hand(rule.world).signs(Scope("group", str(rule.world.general.id)), model="opus")
            card = await rule.opens()
            await rule.picks(card, value="model")
            shown = rule.fresh(card)
            assert "The owner has signed this with their key, so it can't be changed here." in text(shown)
            assert [one.partition(":")[0] for one in ids(shown)] == ["settings-in"]
            done = await FakeMenu(card, rule.of("setting-unset", "model")).pressed_by(rule.cleo)
            assert "signed this" in said(done)
            assert rule.written() == {}

    async def test_tells_an_owner_how_to_sign_another(self, start: Start) -> None:
        async with ruled(start) as rule:
            await Hand(rule.world).signs(GLOBAL, receipts=True)
            card = await rule.opens(rule.world.ann)
            await rule.world.ann.click(card, label="Everywhere")
            await rule.picks(rule.fresh(card), who=rule.world.ann, value="receipts")
            assert "`discoclaw config set global receipts=…` signs another." in text(rule.fresh(card))

    async def test_for_everywhere_leaves_channels_their_choice(self, start: Start) -> None:
        async with ruled(start) as rule:
            await Hand(rule.world).signs(GLOBAL, respond_mode="none")
            await rule.sets("respond_mode", "all")
            await rule.world.bob.send(rule.world.general, "here?")
            await rule.world.bob.send(rule.world.dev, "there?")
            assert len(rule.world.model.requests) == 1


class TestWhatGoesWrong:
    @pytest.mark.parametrize(
        ("field", "wrong", "says"),
        [
            ("context_history", "999", "“Messages I look back on” must be a whole number from 1 to 200."),
            ("context_history", "abc", "“Messages I look back on” must be a whole number from 1 to 200."),
            ("model", "two words", "“Model” must be the name of a model, such as sonnet."),
            ("model", "opus'; drop", "“Model” must be the name of a model, such as sonnet."),
            ("persona", "head", "“Persona” must be a name of up to 32 letters and digits."),
            ("prompt", "a\x00b", "“Instructions” must be a text of 1 to 2000 characters."),
        ],
    )
    async def test_what_cannot_be_is_told_and_not_written(
        self, start: Start, field: str, wrong: str, says: str
    ) -> None:
        async with ruled(start) as rule:
            done = await rule.sets(field, wrong)
            assert says in said(done)
            assert rule.written() == {}

    async def test_discord_itself_takes_no_longer_text_than_fits(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            await rule.picks(card, value="prompt")
            opened = await rule.cleo.click(rule.fresh(card), label="Change…")
            (box,) = [
                one
                for one in simcord.components.walk_components(opened.modal["components"])
                if one["type"] == 4
            ]
            assert box["max_length"] == 2000

    async def test_instructions_full_of_markup_are_shown_as_they_are(self, start: Start) -> None:
        wild = ("# *big* <@1> " * 160)[:2000]
        async with ruled(start) as rule:
            await rule.sets("prompt", wild)
            assert rule.written()[rule.here] == {"prompt": wild.strip()}
            card = await rule.opens()
            await rule.picks(card, value="prompt")
            assert "\\# \\*big\\* " in text(rule.fresh(card))
            opened = await rule.cleo.click(card, label="Change…")
            parts = simcord.components.walk_components(opened.modal["components"])
            assert [one["value"] for one in parts if one["type"] == 4] == [wild.strip()]

    async def test_a_setting_of_another_version_is_told(self, start: Start) -> None:
        async with ruled(start) as rule:
            card = await rule.opens()
            done = await FakeMenu(card, rule.of("setting-unset", "loudness")).pressed_by(rule.cleo)
            assert said(done) == "There is no such setting here any more."
            done = await FakeMenu(card, rule.of("setting-unset", "dm_privacy")).pressed_by(rule.cleo)
            assert said(done) == "There is no such setting here any more."

    async def test_a_file_damaged_by_hand_is_named_and_not_overwritten(self, start: Start) -> None:
        async with ruled(start) as rule:
            path = rule.world.folder / "data" / "memory" / FILE
            path.write_text('{"global": {"receipts": "often"}}', encoding="utf-8")
            done = await rule.sets("receipts", "on")
            assert said(done) == (
                "`config.json` makes no sense: receipts must be true or false, not 'often'. So nothing has "
                "changed; whoever runs me has to correct it first."
            )
            assert path.read_text(encoding="utf-8") == '{"global": {"receipts": "often"}}'

    async def test_a_full_disk_is_told(self, start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
        async with ruled(start) as rule:

            def full(*_: object) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            with monkeypatch.context() as patched:
                patched.setattr(FileDocuments, "write", full)
                done = await rule.sets("receipts", "on")
            assert said(done) == (
                "I couldn't save that (no space left on device), so nothing has changed. "
                "Please try again later."
            )
            assert rule.written() == {}
            assert "**Receipts**: off" in text(await rule.opens())

    async def test_of_two_admins_the_last_wins_and_both_are_in_the_log(
        self, start: Start, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        async with ruled(start) as rule:
            ann, theirs, mine = rule.world.ann, await rule.opens(), await rule.opens(rule.world.ann)
            await rule.picks(theirs, value="receipts")
            await rule.picks(mine, who=ann, value="receipts")
            await rule.picks(rule.fresh(theirs), kind="setting", value="on")
            await rule.picks(rule.fresh(mine), who=ann, kind="setting", value="off")
            assert rule.written()[rule.here] == {"receipts": False}
            assert f"({rule.cleo.id}) set receipts for {rule.here}: None → True" in caplog.text
            assert f"({ann.id}) set receipts for {rule.here}: True → False" in caplog.text
            assert f"set by <@{ann.id}>" in text(await rule.opens())

    async def test_the_same_again_changes_nothing(self, start: Start) -> None:
        async with ruled(start) as rule:
            await rule.sets("receipts", "on")
            card = await rule.opens()
            await rule.picks(card, value="receipts")
            await rule.picks(rule.fresh(card), kind="setting", value="on")
            assert "That's what it is already." in text(rule.fresh(card))


class TestWhoChangedIt:
    async def test_is_forgotten_when_they_erase_themselves_and_the_setting_stays(self, start: Start) -> None:
        async with ruled(start) as rule:
            await rule.sets("receipts", "on")
            record = rule.world.folder / "data" / "memory" / "changed.json"
            assert str(rule.cleo.id) in record.read_text(encoding="utf-8")
            await rule.cleo.send(rule.world.general, "!memory erase --yes")
            await rule.world.settle()
            assert str(rule.cleo.id) not in record.read_text(encoding="utf-8")
            assert rule.written()[rule.here] == {"receipts": True}
            assert "**Receipts**: on\n-# set in `config.json`" in text(await rule.opens())

    async def test_is_not_known_after_an_edit_by_hand_or_where_the_record_is_damaged(
        self, start: Start
    ) -> None:
        async with ruled(start) as rule:
            await rule.sets("receipts", "on")
            edit(rule.world, {rule.here: {"receipts": False}})
            assert "**Receipts**: off\n-# set in `config.json`" in text(await rule.opens())
            (rule.world.folder / "data" / "memory" / "changed.json").write_text("{", encoding="utf-8")
            await rule.sets("receipts", "on")
            await rule.world.restart()
            assert f"set by <@{rule.cleo.id}>" in text(await rule.opens())

    @pytest.mark.parametrize("whole", [True, False])
    async def test_is_forgotten_in_a_damaged_record_too(self, start: Start, whole: bool) -> None:
        async with ruled(start) as rule:
            await rule.sets("receipts", "on")
            record = rule.world.folder / "data" / "memory" / "changed.json"
            record.write_bytes(record.read_bytes()[: None if whole else -3])
            await rule.world.restart()
            await rule.cleo.send(rule.world.general, "!memory erase --yes")
            await rule.world.settle()
            assert str(rule.cleo.id) not in record.read_text(encoding="utf-8")

    async def test_stays_as_a_newer_version_has_written_it_and_an_erasing_says_so(self, start: Start) -> None:
        async with ruled(start) as rule:
            record = rule.world.folder / "data" / "memory" / "changed.json"
            newer = json.dumps({"version": 2, "who": [str(rule.cleo.id)]})
            record.write_text(newer, encoding="utf-8")
            await rule.sets("receipts", "on")
            assert rule.written()[rule.here] == {"receipts": True}
            assert record.read_text(encoding="utf-8") == newer
            await rule.cleo.send(rule.world.general, "!memory erase --yes")
            await rule.world.settle()
            assert "couldn't be removed yet" in rule.world.answer(rule.world.general)
            assert record.read_text(encoding="utf-8") == newer


class TestTheModelCommand:
    async def test_shows_and_sets_the_model_of_the_channel(self, start: Start) -> None:
        async with ruled(start) as rule:
            shown = await rule.cleo.slash(rule.world.general, "model")
            assert shown.response.content.startswith(f"sonnet answers in <#{rule.world.general.id}>.")
            done = await rule.cleo.slash(rule.world.general, "model", name="llama3.2:8b")
            assert done.response.content == f"llama3.2:8b now answers in <#{rule.world.general.id}>."
            await rule.world.ann.send(rule.world.general, "hello")
            await rule.world.ann.send(rule.world.dev, "hello")
            assert [one.model for one in rule.world.model.requests[-2:]] == ["llama3.2:8b", "sonnet"]

    async def test_sets_it_everywhere_in_an_owners_dm(self, start: Start) -> None:
        async with ruled(start) as rule:
            done = await rule.world.ann.user.slash("model", name="opus")
            assert done.response.content == "opus now answers everywhere."
            assert rule.written()["global"] == {"model": "opus"}
            refused = await rule.cleo.user.slash("model", name="opus")
            assert "Only my owners" in refused.response.content

    @pytest.mark.parametrize(
        ("error", "says"),
        [
            (
                ModelNotFound("404"),
                "The server doesn't give me the model `nosuch`, so I keep the one there is.",
            ),
            (ModelUnreachable("no"), "I couldn't find out whether the server has the model `nosuch`, so"),
        ],
    )
    async def test_a_name_that_the_server_does_not_know_is_told_and_not_taken(
        self, start: Start, error: Any, says: str
    ) -> None:
        async with ruled(start, Scripted(error)) as rule:
            done = await rule.cleo.slash(rule.world.general, "model", name="nosuch")
            assert done.response.content.startswith(says)
            assert rule.written() == {}

    async def test_a_model_that_goes_away_later_is_told_with_the_way_out(self, start: Start) -> None:
        async with ruled(start) as rule:
            await rule.cleo.slash(rule.world.general, "model", name="brief")
            rule.world.model.words = [ModelNotFound("404"), ModelNotFound("404")]
            await rule.world.ann.send(rule.world.general, "hello")
            answer = rule.world.answer(rule.world.general)
            assert "doesn't have the model `brief`" in answer and "`/model`" in answer
            await rule.world.ann.send(rule.world.dev, "hello")
            assert "the model I'm set up with" in rule.world.answer(rule.world.dev)

    async def test_offers_names_and_takes_any_other(self, start: Start) -> None:
        async with ruled(start) as rule:
            offered = await rule.cleo.autocomplete(rule.world.general, "model", "name", "son")
            assert [one["value"] for one in offered] == ["sonnet"]
            offered = await rule.cleo.autocomplete(rule.world.general, "model", "name", "qwen3")
            assert [one["value"] for one in offered] == ["qwen3"]
