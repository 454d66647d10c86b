"""docs/admins/settings.md: each setting with its meaning, default and what is allowed. `make docs` writes it.

Explanations, defaults and subjects are those of `.env.example`; what is allowed comes from the fields of
`Settings`. Knows nothing about values that are set.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from pydantic.fields import FieldInfo

from discoclaw import settings
from discoclaw.core.live_fields import TABLE
from discoclaw.settings import Settings
from discoclaw.settings_types import Secret
from discoclaw.settings_words import allowed

INTRODUCTION = """\
# Settings

After reading this page, you know what every setting does, its default, and what is allowed. [Operating](operating.md#the-settings-that-matter-first) says which ones matter first.

Settings come from environment variables and from the file `.env` in the folder where the bot starts; a variable wins over the file. `discoclaw init` asks for the first ones and writes them to `.env`. [.env.example](../../.env.example) is this list as a file to copy. A wrong value stops the start and names what is allowed; a misspelled name is pointed out. Where no default is named, nothing is set. 1 means yes, 0 no. Secrets are never shown. *Live* names the [field](../members/discord.md#settings) that changes a setting while the bot runs, for example with `/settings`.

## Which server takes which settings

| server | its name | key | address |
|---|---|---|---|
| Anthropic, or another with its API | `anthropic` | `ANTHROPIC_API_KEY` | `https://api.anthropic.com`, or `ANTHROPIC_BASE_URL` |
| OpenAI, or another with its API | `openai` | `OPENAI_API_KEY` | `https://api.openai.com/v1`, or `OPENAI_BASE_URL` |
| Ollama | `ollama` | none | `http://127.0.0.1:11434/v1` |
| LM Studio | `lmstudio` | none | `http://127.0.0.1:1234/v1` |
| llama.cpp | `llamacpp` | none | `http://127.0.0.1:8080/v1` |
| vLLM | `vllm` | none | `http://127.0.0.1:8000/v1` |
| OpenRouter | `openrouter` | `OPENROUTER_API_KEY` | `https://openrouter.ai/api/v1` |
| Google | `gemini` | `GEMINI_API_KEY` | `https://generativelanguage.googleapis.com/v1beta/openai` |

`DISCOCLAW_MODEL`, `DISCOCLAW_SUMMARY_MODEL`, `DISCOCLAW_DURABLE_MODEL` and `/model` take a model's name with its server before it (`ollama:qwen3:8b`), each of another server if you like; without a server, it is a model of `DISCOCLAW_MODEL_PROVIDER`. `DISCOCLAW_MODEL_SERVERS=ollama=http://192.168.1.5:11434/v1` says where one of the last six is, if not at its usual address.
"""  # noqa: E501

_SUBJECT = re.compile(r"# --- (.+) ---")
_SETTING = re.compile(r"#?([A-Z][A-Z0-9_]*)=(.*)")
_NAMED = re.compile(rf"\b(?:{'|'.join(sorted(settings.names(), key=len, reverse=True))})\b")
_CODE = re.compile(r"(`[^`]*`)")
SAID = {allowed(kind, FieldInfo()) for kind in (bool, str, Secret)}
"""What needs no line of its own: the introduction says it."""


@dataclass(frozen=True, slots=True)
class Explained:
    """One setting of `.env.example`. `default` is "" where nothing is set."""

    subject: str
    name: str
    default: str
    meaning: str


def explained(example: str) -> Iterator[Explained]:
    """Each setting of `.env.example`, in its order.

    Raises ValueError for a line that is none of its forms, and for a setting without an explanation.
    """
    subject, meaning = "", list[str]()
    for line in example.splitlines():
        if heading := _SUBJECT.fullmatch(line):
            subject, meaning = heading[1], []
        elif setting := _SETTING.fullmatch(line):
            if not subject or not meaning:
                raise ValueError(f"{setting[1]} has no explanation or no subject in .env.example")
            yield Explained(subject, setting[1], setting[2], " ".join(meaning))
            meaning = []
        elif line.startswith("# "):
            meaning.append(line.removeprefix("# "))
        elif line:
            raise ValueError(f".env.example has a line that is no comment and no setting: {line}")


def page(example: str, names: Mapping[str, str] | None = None) -> str:
    """The whole document. Raises ValueError where a setting is not explained.

    `names` are the variables with their fields, by default all of them.
    """
    named = settings.names() if names is None else names
    hints = get_type_hints(Settings, include_extras=True)
    fields = {name: (hints[field], Settings.model_fields[field]) for name, field in named.items()}
    subjects: dict[str, list[Explained]] = {}
    for one in explained(example):
        subjects.setdefault(one.subject, []).append(one)
    missing = set(fields) - {one.name for found in subjects.values() for one in found}
    if missing:
        raise ValueError(f".env.example does not have {', '.join(sorted(missing))}")
    parts = [INTRODUCTION]
    for subject, found in subjects.items():
        parts += [f"## {subject}\n", *(_entry(one, allowed(*fields[one.name])) for one in found)]
    return "\n".join(parts)


def _entry(one: Explained, takes: str) -> str:
    default = f"Default: `{one.default}`." if one.default else ""
    live = [row.name for row in TABLE if row.variable == one.name]
    changes = f"Live: `{live[0]}`." if live else ""
    said = takes in SAID or all(choice in one.meaning for choice in re.split(", | or ", takes))
    limits = "" if said else f"Allowed: {_prose(takes.removeprefix('a whole number from '))}."
    facts = " ".join(part for part in (default, limits, changes) if part)
    return "\n\n".join(part for part in (f"### `{one.name}`", _prose(one.meaning), facts) if part) + "\n"


def _prose(text: str) -> str:
    """A text of `.env.example` as Markdown: settings as code, and nothing that could pass for HTML."""
    parts = _CODE.split(text)
    return "".join(
        part if part.startswith("`") else _NAMED.sub(r"`\g<0>`", part.replace("<", "&lt;")) for part in parts
    )


def main(path: Path, example: Path) -> None:
    """Write the document."""
    path.write_text(page(example.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
