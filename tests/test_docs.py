"""The documents agree with the program: their links, the settings they name, and the commands they show."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from discoclaw import settings
from discoclaw.cli.main import ABOUT, cli, whole

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "data/README.md", ROOT / "content/README.md"]
)
PROGRAM: Any = typer.main.get_command(cli)
PROGRAM.commands = {name: whole(name) for name in ABOUT}

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
FIRST_WORDS = "|".join(sorted({name.partition("_")[0] for name in settings.names()}))
VARIABLE = re.compile(rf"\b(?:{FIRST_WORDS})_[A-Z][A-Z_]*[A-Z]\b")
COMMAND = re.compile(r"\bdiscoclaw +((?:-|[a-z])[^\n`#]*)")

IN_DISCORD = re.compile(r"[!/](?:memory|hatch|nostr) ([a-z][a-z-]*)")


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def wrong_on_pages(look: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """What is wrong on each page that has anything wrong."""
    found = {str(page.relative_to(ROOT)): [*look(page)] for page in PAGES}
    return {name: wrong for name, wrong in found.items() if wrong}


def broken_links(page: Path) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text_of(page))):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        found = page.parent / name if name else page
        if not found.exists() or (anchor and anchor not in anchors(found)):
            yield target


def shown(page: Path, form: re.Pattern[str]) -> list[str]:
    """What has this form in the code of a page."""
    return [found for code in CODE.findall(text_of(page)) for found in form.findall(code)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text_of(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def children(command: Any) -> dict[str, Any]:
    """The commands below a command, by name."""
    return getattr(command, "commands", {})


def leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that does something, by its full name."""
    for name, below in children(command).items():
        if children(below):
            yield from leaves(below, (*path, name))
        else:
            yield " ".join((*path, name))


def wrong_in(words: list[str]) -> str:
    """What the program would not understand of `discoclaw <words>`; "" when it understands all."""
    command = PROGRAM
    for word in words:
        if word.startswith("-"):
            options = {name for param in command.params for name in param.opts}
            if word not in {"--help", "-", *options}:
                return word
        elif children(command) and word != "…":
            if word not in children(command):
                return word
            command = children(command)[word]
    return ""


class TestTheReadme:
    def test_is_read_in_a_few_minutes(self) -> None:
        assert len(text_of(ROOT / "README.md").splitlines()) <= 130

    def test_shows_how_to_start(self) -> None:
        page = text_of(ROOT / "README.md")
        assert [one for one in ("make demo", "make test", "make run") if one not in page] == []

    def test_links_the_index_of_the_documentation_which_links_every_page(self) -> None:
        assert "docs/README.md" in LINK.findall(text_of(ROOT / "README.md"))
        linked = {target.partition("#")[0] for target in LINK.findall(text_of(ROOT / "docs/README.md"))}
        pages = ROOT.glob("docs/*/*.md")
        assert {str(page.relative_to(ROOT / "docs")) for page in pages} <= linked


def test_links_lead_somewhere() -> None:
    assert wrong_on_pages(broken_links) == {}


class TestSettings:
    def test_that_are_named_exist(self) -> None:
        known = set(settings.names())
        assert wrong_on_pages(lambda page: set(VARIABLE.findall(text_of(page))) - known) == {}

    @pytest.mark.design(262)
    def test_are_all_in_the_example(self) -> None:
        assert set(settings.names()) - set(VARIABLE.findall(text_of(ROOT / ".env.example"))) == set()


class TestCommands:
    def test_that_are_shown_exist(self) -> None:
        assert (
            wrong_on_pages(
                lambda page: [line for line in shown(page, COMMAND) if wrong_in(line.split())],
            )
            == {}
        )

    def test_are_all_on_the_page_of_the_command_line(self) -> None:
        page = text_of(ROOT / "docs/admins/command-line.md")
        assert [name for name in leaves(PROGRAM) if f"`discoclaw {name}" not in page] == []

    def test_of_discord_are_on_their_page(self) -> None:
        listed = set(re.findall(r"[\w-]+", text_of(ROOT / "docs/members/commands.md")))
        assert wrong_on_pages(lambda page: set(shown(page, IN_DISCORD)) - listed) == {}

    def test_of_make_exist(self) -> None:
        targets = set(re.findall(r"^([a-z-]+):", text_of(ROOT / "Makefile"), re.MULTILINE))
        made = re.compile(r"\bmake ([a-z][a-z-]*)")
        assert wrong_on_pages(lambda page: set(shown(page, made)) - targets) == {}


@pytest.mark.design(311)
def test_the_paper_behind_the_ledger_is_cited() -> None:
    page = text_of(ROOT / "docs/dev/decisions.md")
    assert "“Git Context Controller: Manage the Context of LLM-based Agents like Git”" in page
    assert "[arXiv:2508.00031](https://arxiv.org/abs/2508.00031)" in page
