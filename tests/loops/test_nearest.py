"""What is looked for in a large memory before something is learned: clues out of the talk."""

import random
import re

from discoclaw.core.visible import VisibleItems
from discoclaw.loops.nearest import MOST_CLUES, Clue, Nearest, few
from tests.core.builders import NOW, item


async def test_the_order_of_storing_makes_no_difference() -> None:
    words = ["tea", "cat", "dog", "lamp", "boat", "kite", "drum", "Linz", "Graz", "vim", "rust", "piano"]
    dice = random.Random(5)
    many = [
        item(f"User's {number} {' '.join(dice.sample(words, 3))}.", updated_at=NOW + number // 7)
        for number in range(120)
    ]
    clues = [Clue("the cat and the lamp"), Clue("Linz or Graz"), Clue("rust")]
    found = await Nearest().to("user-1", VisibleItems(many), clues, private=False)
    for _ in range(5):
        dice.shuffle(many)
        again = await Nearest().to("user-1", VisibleItems(many), clues, private=False)
        assert again == found


def test_five_hundred_messages_are_forty_queries_that_say_all_of_it() -> None:
    made = few([Clue(f"fact{number} is true") for number in range(500)])
    assert len(made) <= MOST_CLUES
    assert re.findall(r"fact\d+", " ".join(one.text for one in made)) == [f"fact{n}" for n in range(500)]
    assert few([Clue(""), Clue("  ")]) == []
    assert few([Clue("x" * 1000, "before")])[0] == Clue("x" * 300, "before")
