"""The form of a command in a message's menu: a field for each of its parameters."""

from discoclaw.bot.buttons import USER
from discoclaw.bot.commands.spec import Command
from discoclaw.bot.modals import LONGEST, Field, PersonalModal, opened
from discoclaw.bot.pressed import Opens
from discoclaw.bot.presses import Outcome, Press, Presses


class MenuForm(Opens, PersonalModal, template=rf"menu:{USER}:(?P<name>[^:]{{1,32}}):(?P<message>\d{{1,20}})"):
    """Carries out a command with what was typed into its form. It answers as a slash command does."""

    async def do(self, presses: Presses, press: Press) -> Outcome:
        await presses.commands.filled(press, self.known["name"], self.known["message"], dict(self.values))
        return ""


async def asked_for(press: Press, command: Command, message_id: int) -> None:
    """Open the form of a command, for the person who chose it. Raises ChatError."""
    fields = [
        Field(one.name, one.help, most=(one.bounds or (1, LONGEST))[1], required=one.required)
        for one in command.params
    ]
    await opened(press, f"menu:{press.user.id}:{command.path}:{message_id}", command.path, fields)
