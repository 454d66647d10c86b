"""What the bot proposes below an answer: a text, and the buttons of the decision."""

import discord

from discoclaw.bot.buttons import hatch_view, switch_view
from discoclaw.bot.proposals import answer_view
from discoclaw.bot.texts import offers, pending
from discoclaw.core.ports import AskOffer, HatchOffer, Offer


def offered(offer: Offer | HatchOffer | AskOffer) -> tuple[str, discord.ui.View]:
    """A proposal as it is shown."""
    if isinstance(offer, AskOffer):
        view = answer_view(offer.user_id, offer.commit, offer.branch, whole=True, several=False)
        return pending.asked(offer.pending, offer.held), view
    if isinstance(offer, HatchOffer):
        return offers.NO_PERSONALITY, hatch_view(offer.user_id)
    return offers.switch(offer.branch), switch_view(offer.user_id, offer.branch)
