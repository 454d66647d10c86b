"""What the settings mean, in words: docs/admins/settings.md and .env.example, which `make docs` writes.

Everything comes from the fields of `Settings` and the docstrings below them. Knows nothing about values that
are set.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from discoclaw import settings
from discoclaw.core.model import PROVIDERS, SERVERS
from discoclaw.core.policy import FIELDS
from discoclaw.settings import Settings
from discoclaw.settings_types import Secret, allowed

INTRODUCTION = """\
# Settings

After reading this page, you know what every setting does, its default, and what is allowed. [Operating](operating.md#the-settings-that-matter-first) says which ones matter first.

Settings come from environment variables and from the file `.env` in the folder where the bot starts; a variable wins over the file. `discoclaw init` asks for the first ones and writes them to `.env`. [.env.example](../../.env.example) is this list as a file to copy. A wrong value stops the start and names what is allowed; a misspelled name is pointed out. Where no default is named, nothing is set. 1 means yes, 0 no. Secrets are never shown. *Live* names the [field](../members/discord.md#settings) that changes a setting while the bot runs, for example with `/settings`.

## Which server takes which settings
"""  # noqa: E501
BELOW_THE_SERVERS = """\
`DISCOCLAW_MODEL`, `DISCOCLAW_SUMMARY_MODEL`, `DISCOCLAW_DURABLE_MODEL` and `/model` take a model's name with its server before it (`ollama:qwen3:8b`), each of another server if you like; without a server, it is a model of `DISCOCLAW_MODEL_PROVIDER`. `DISCOCLAW_MODEL_SERVERS=ollama=http://192.168.1.5:11434/v1` says where a server is whose address has no setting in the table, if not at its usual one.
"""  # noqa: E501

EXAMPLE = """\
# DiscoClaw's settings. `discoclaw init` asks for the first ones and writes them to `.env`; or copy this file to
# `.env` and fill in what you need. Environment variables win over `.env`.
# A commented line shows the default; 1 means yes, 0 no. A wrong value stops the start and names what is allowed.
# The settings of the first day come first; all others can stay as they are.
"""  # noqa: E501
FIRST = "The first day"
_NAMED = re.compile(rf"\b(?:{'|'.join(sorted(settings.names(), key=len, reverse=True))})\b")
_CODE = re.compile(r"(`[^`]*`)")
SAID = {allowed(kind, FieldInfo()) for kind in (bool, str, Secret)}
"""Types that need no line of their own: the introduction explains them."""


class Setting(NamedTuple):
    """One setting in words. `default` is "" where nothing is set; `takes` is what is allowed."""

    name: str
    subject: str
    default: str
    meaning: str
    takes: str


@cache
def described(kind: type[Settings] = Settings) -> tuple[Setting, ...]:
    """All settings in the order of the list, those of the first day first.

    Raises ValueError for a setting without a docstring.
    """
    meanings = _docstrings(kind)
    hints = get_type_hints(kind, include_extras=True)
    first, others, subject = list[Setting](), list[Setting](), ""
    for field, info in kind.model_fields.items():
        if field not in meanings:
            raise ValueError(f"{info.validation_alias} has no docstring that says what it means")
        how: Any = info.json_schema_extra
        subject = how["subject"] or subject
        one = Setting(
            str(info.validation_alias),
            FIRST if how["first"] else subject,
            _written(info.default),
            meanings[field],
            allowed(hints[field], info),
        )
        (first if how["first"] else others).append(one)
    return (*first, *others)


def _docstrings(kind: type) -> dict[str, str]:
    """The docstrings below the fields of a class and of its bases, each as one line."""
    if kind is not Settings:
        return _docstrings(Settings) | _below_fields(kind)
    return _below_fields(kind)


def _below_fields(kind: type) -> dict[str, str]:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in zip(tree.body, tree.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = " ".join(text.split())
    return found


def _written(default: Any) -> str:
    """A default as people write it into `.env`."""
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if isinstance(default, bool):
        return str(int(default))
    if isinstance(default, float):
        return f"{default:.10g}"
    return str(default) if isinstance(default, str | int | Path) else ""


def example(known: Iterable[Setting] | None = None) -> str:
    """`.env.example`: every setting with its meaning, as a file to copy."""
    parts, subject = [EXAMPLE], ""
    for one in described() if known is None else known:
        if one.subject != subject:
            subject = one.subject
            parts.append(f"\n# --- {subject} ---\n")
        parts += [f"# {line}\n" for line in textwrap.wrap(one.meaning, 116, break_on_hyphens=False)]
        empty = subject == FIRST and not one.default
        parts.append(f"{'' if empty else '#'}{one.name}={one.default}\n")
    return "".join(parts)


def page(known: Iterable[Setting] | None = None) -> str:
    """docs/admins/settings.md."""
    parts, subject = [INTRODUCTION, _servers(), BELOW_THE_SERVERS], ""
    for one in described() if known is None else known:
        if one.subject != subject:
            subject = one.subject
            parts.append(f"## {subject}\n")
        parts.append(_entry(one))
    return "\n".join(parts)


def _servers() -> str:
    """The table of the servers of models."""
    lines = ["| server | its name | key | address |", "|---|---|---|---|"]
    for name, one in PROVIDERS.items():
        if one.address is not None:
            own = one.moved != SERVERS
            title = f"{one.title}, or another with its API" if own else one.title
            address = f"`{one.address}`, or `{one.moved}`" if own else f"`{one.address}`"
            lines.append(f"| {title} | `{name}` | {f'`{one.key}`' if one.key else 'none'} | {address} |")
    return "\n".join(lines) + "\n"


def _entry(one: Setting) -> str:
    default = f"Default: `{one.default}`." if one.default else ""
    live = [row.name for row in FIELDS.values() if row.variable == one.name]
    changes = f"Live: `{live[0]}`." if live else ""
    said = one.takes in SAID or all(choice in one.meaning for choice in re.split(", | or ", one.takes))
    limits = "" if said else f"Allowed: {_prose(one.takes.removeprefix('a whole number from '))}."
    facts = " ".join(part for part in (default, limits, changes) if part)
    return "\n\n".join(part for part in (f"### `{one.name}`", _prose(one.meaning), facts) if part) + "\n"


def _prose(text: str) -> str:
    """A meaning as Markdown: settings as code, and nothing that could pass for HTML."""
    parts = _CODE.split(text)
    return "".join(
        part if part.startswith("`") else _NAMED.sub(r"`\g<0>`", part.replace("<", "&lt;")) for part in parts
    )


def main(document: Path, to_copy: Path) -> None:
    """Write both."""
    document.write_text(page(), encoding="utf-8")
    to_copy.write_text(example(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
