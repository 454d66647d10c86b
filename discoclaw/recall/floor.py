"""The floor of an embedding model: the cosine from which a memory may be what a question means. Pure.

Models differ in what a cosine says: unrelated texts have 0.05 with one model, and 0.77 with another. So each
model embeds the same questions and memories, of which each question is about one memory, and the floor lies
between what it gives to the pairs that belong together and what it gives to all others.
"""

from collections.abc import Sequence
from statistics import median

PAIRS = (
    ("what's my cat called again?", "User has a grey cat named Pixel."),
    ("which editor do I use for code?", "User writes programs in Neovim."),
    ("when do we fly to Lisbon?", "User's flight to Portugal leaves on the ninth of May."),
    ("can I eat this peanut sauce?", "User is allergic to nuts."),
    ("where does my sister live now?", "User's sister moved to Oslo last year."),
    (
        "how should the deploy of the website be done?",
        "Releases of the homepage go through the staging server first.",
    ),
    ("what did the dentist say?", "User needs a crown on a molar, according to the dental clinic."),
    ("recommend a novel for the weekend", "User loves reading detective stories."),
    ("who is my boss?", "Teresa manages the team that User works in."),
    (
        "what was the budget for the kitchen?",
        "User wants to spend at most 8,000 euros on renovating the kitchen.",
    ),
    ("how is my marathon training going?", "User runs forty kilometres a week to prepare for a race."),
    ("which guitar strings should I buy?", "User plays an acoustic guitar with nylon strings."),
    ("did the landlord answer about the heating?", "The owner of the flat promised to repair the radiator."),
    ("what colour is my car?", "User drives a red Mazda."),
    ("when is mum's birthday?", "User's mother was born on the third of October."),
    ("my tomatoes have yellow leaves", "User grows vegetables on the balcony."),
    ("what do I take for my migraine?", "User uses sumatriptan against headaches."),
    ("is the exam in statistics soon?", "User's test in probability theory is on Monday."),
    ("which database did we choose?", "The project stores its data in PostgreSQL."),
    ("what time does the chess club meet?", "User plays chess with others every Thursday at seven."),
    ("how do I take my coffee?", "User drinks espresso without sugar."),
    ("was schenke ich meinem Bruder?", "Der Bruder des Nutzers sammelt alte Landkarten."),
    ("¿dónde aprendí a nadar?", "El usuario tomó clases de natación en un lago de Chile."),
    ("quel vin va avec le poisson ?", "L'utilisateur préfère le vin blanc avec les fruits de mer."),
    ("какой у меня телефон?", "Пользователь купил новый смартфон Samsung."),
    ("我的孩子几岁了？", "用户的女儿今年六岁。"),
)
"""Questions, each with a memory that it is about; the other memories have nothing to do with it."""
RULE = 1
"""The version of the calculation: floors that were measured by another are measured again."""
PROBE = PAIRS[0][0]
"""The text whose vector tells whether a model is still the one that was measured."""
NEVER = 2.0
"""A floor that no cosine reaches: what such a model says about meaning is evidence of nothing."""

UNRELATED = 0.99
"""The share of the unrelated pairs that are less near than what counts as far."""
TOWARDS = 0.75
"""How much of the way from far to near the floor lies.

In a memory many things are of one kind, so they are nearer to a question than these pairs are.
"""

LEAST = 1e-3
"""A smaller difference between near and far is rounding."""


def texts() -> list[str]:
    """All questions, then all memories, in the order of the pairs."""
    return [question for question, _ in PAIRS] + [memory for _, memory in PAIRS]


def floor_of(cosines: Sequence[Sequence[float]]) -> float:
    """The floor of the model that gave these cosines: a row for each question, a column for each memory.

    `NEVER` if it can't tell the memory that a question is about from the others.
    """
    related = [row[place] for place, row in enumerate(cosines)]
    others = sorted(cos for place, row in enumerate(cosines) for cos in (*row[:place], *row[place + 1 :]))
    far, near = others[round(UNRELATED * (len(others) - 1))], median(related)
    return far + TOWARDS * (near - far) if near - far > LEAST else NEVER
