"""Options of a command: one definition for slash commands and for the text form, `--name value`.

As a slash command each is a field of its own. As text people write them as on a command line, and parsing
is forgiving: a yes-or-no option needs no value, plain words fill the positional ones in order, and the long
dashes that phones make of `--` count. Knows nothing about what the options mean.
"""

import re
from collections import deque
from typing import cast, get_args

from discord.ext import commands

_NAME = re.compile(r"(?:--|[—–])([a-z][a-z-]*)(?:=(.*))?", re.IGNORECASE)


class Options(commands.FlagConverter, prefix="--", delimiter=" ", case_insensitive=True):
    """Base of all options. Subclasses name their options as annotated fields.

    `positional` are the names that plain words fill, in order; the last one takes all that is left.
    `phrases` are names whose value is more than one word: everything up to the next option.
    """

    # Without annotations: an annotated name would be taken for an option.
    positional = cast("tuple[str, ...]", ())
    phrases = cast("tuple[str, ...]", ())

    @classmethod
    def parse_flags(cls, argument: str, *, ignore_extra: bool = True) -> dict[str, list[str]]:
        """The options of a text, by name. Raises UserInputError for an unknown or unfinished one."""
        flags = cls.get_flags()
        named: dict[str, list[str]] = {}
        plain: list[str] = []
        words = deque(argument.split())
        while words:
            word = words.popleft()
            found = _NAME.fullmatch(word)
            if found is None:
                plain.append(word)
                continue
            name, value = found[1].lower(), found[2]
            if name not in flags:
                raise commands.UserInputError(f"there is no option --{name}")
            if value is None:
                value = cls._value(name, flags[name], words)
            if not value:
                raise commands.MissingFlagArgument(flags[name])
            named[name] = [value]
        return named | cls._placed(plain, named)

    @classmethod
    def _value(cls, name: str, flag: commands.Flag, words: deque[str]) -> str:
        """The value that follows an option's name; it is taken from `words`."""
        if flag.annotation is bool or bool in get_args(flag.annotation):
            return "true"
        taken: list[str] = []
        while words and not _NAME.fullmatch(words[0]) and (name in cls.phrases or not taken):
            taken.append(words.popleft())
        return " ".join(taken)

    @classmethod
    def _placed(cls, plain: list[str], named: dict[str, list[str]]) -> dict[str, list[str]]:
        """What the plain words stand for."""
        free = [name for name in cls.positional if name not in named]
        if not plain:
            return {}
        if not free:
            raise commands.UserInputError(f"{plain[0]!r} is too much")
        placed = dict(zip(free[:-1], plain, strict=False))
        if len(plain) >= len(free):
            placed[free[-1]] = " ".join(plain[len(free) - 1 :])
        return {name: [value] for name, value in placed.items()}
