"""Values of live configuration as people read, choose and type them. See `live_fields`."""

from discoclaw.core.errors import Refused
from discoclaw.core.live_fields import MOST_PROMPT, Choice, Field, Number, Switch, Value


def value_words(field: Field, value: Value | None) -> str:
    """A value in words, which are not markup yet."""
    if value is None or value == "":
        return "none"
    if isinstance(field.type, Switch):
        return "on" if value else "off"
    if isinstance(field.type, Choice):
        return field.type.meanings[str(value)]
    return str(value)


def options(field: Field) -> list[tuple[str, str]]:
    """The values to choose from, as they are typed and in words; nothing where a value is typed."""
    if isinstance(field.type, Choice):
        return list(field.type.meanings.items())
    return [("on", "on"), ("off", "off")] if isinstance(field.type, Switch) else []


def longest(field: Field) -> int:
    """How many characters a value has at most that is typed."""
    return 3 if isinstance(field.type, Number) else MOST_PROMPT if has_lines(field) else 120


def has_lines(field: Field) -> bool:
    """Whether a value may have several lines."""
    return field.name == "prompt"


def typed_value(field: Field, typed: str) -> Value | None:
    """The value that somebody typed or chose; None for nothing. Raises Refused, naming the field's title."""
    try:
        return field.typed(typed) if typed.strip() else None
    except Refused:  # its text names the field as the file does
        raise Refused(f"“{field.title}” must be {field.type.allowed}") from None


def changed_words(field: Field, value: Value | None) -> str:
    """What became of a field that was given a value: “is now on”."""
    return f"is now {value_words(field, value)}" if value is not None else "is the default again"
