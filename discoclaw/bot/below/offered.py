"""What the bot proposes below an answer: a text, and the buttons of the decision."""

from discoclaw.bot.cards import offers as cards
from discoclaw.bot.cards.card import Card
from discoclaw.bot.texts import naming, offers, pending
from discoclaw.core.ports import AnyOffer, AskOffer, ChoiceOffer, HatchOffer


def offered(offer: AnyOffer) -> Card:
    """A proposal as it is shown."""
    user_id = offer.user_id
    if isinstance(offer, AskOffer):
        text = pending.asked(offer.pending, offer.held)
        return cards.proposed(text, user_id, offer.commit, offer.branch, whole=True, several=False)
    if isinstance(offer, HatchOffer):
        return cards.interview(offers.NO_PERSONALITY, user_id)
    if isinstance(offer, ChoiceOffer):
        verb = "edit" if offer.text else "forget"
        return cards.choosing(naming.offered(verb, offer.about, offer.text), user_id, verb, offer.branch)
    return cards.persona(offers.switch(offer.branch), user_id, offer.branch)
