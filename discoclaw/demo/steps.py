"""What is worth trying first, as the page's welcome offers it: five steps of one or more acts."""

from typing import Any

from discoclaw.demo.world import World


def steps(world: World) -> list[dict[str, Any]]:
    """The steps. An act is said by the person `who` in the channel `where` (ids); `go` only opens that."""
    you, sam, _ = (str(one) for one in world.people)
    general, other, private = (str(one.id) for one in (world.general, world.other, world.private))

    def act(who: str, where: str, say: str, label: str, **more: Any) -> dict[str, Any]:
        return {"who": who, "where": where, "say": say, "label": label, **more}

    here, there = f"#{world.general.name}", f"#{world.other.name}"
    return [
        {
            "id": "say",
            "title": "Say something about yourself",
            "about": "It remembers, and says what it remembered.",
            "acts": [act(you, general, "I prefer tabs over spaces", f"Say it in {here}")],
        },
        {
            "id": "ask",
            "title": "Ask somewhere else",
            "about": "It knows you in another channel too. When Sam asks, it knows nothing about Sam.",
            "acts": [
                act(you, other, "What do I prefer?", f"Ask in {there}"),
                act(sam, other, "What do I prefer?", "Ask as Sam"),
            ],
        },
        {
            "id": "private",
            "title": "Say something private",
            "about": "What you say in direct messages stays there.",
            "acts": [
                act(you, private, "I'm allergic to penicillin", "Say it in a direct message"),
                act(you, private, "What am I allergic to?", "Ask there"),
                act(you, general, "What am I allergic to?", f"Ask in {here}"),
            ],
        },
        {
            "id": "change",
            "title": "Contradict yourself",
            "about": "What you told it to remember, only you can change: it asks you which is right.",
            "acts": [
                act(you, other, "!memory remember My favourite dish is lasagne", "Have it remember a dish"),
                act(you, other, "My favourite dish is pizza", "Say another one"),
                act(you, private, "", "See its question", go=True),
            ],
        },
        {
            "id": "look",
            "title": "See it, and take it back",
            "about": "Everything it knows about you is yours to read, to change and to delete.",
            "acts": [
                act(you, private, "/memory show", "Show my memory"),
                act(you, private, "/memory preview", "What would it tell the model?"),
                act(you, private, "/memory forget penicillin", "Forget the allergy"),
            ],
        },
    ]
