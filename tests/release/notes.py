"""The sections of CHANGELOG.md: what a release of a version says, and what keeps it from being released."""

import re
from datetime import date

GROUPS = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")
UNRELEASED = "Unreleased"

_SECTION = re.compile(r"^## (?P<title>.+)\n(?P<body>(?:(?!## ).*\n?)*)", re.M)
_ENTRY = re.compile(r"^- \S", re.M)


def sections(changelog: str) -> list[tuple[str, str]]:
    """Each section's title and text, the newest first."""
    return [(one["title"].strip(), one["body"].strip()) for one in _SECTION.finditer(changelog)]


def odd_groups(body: str) -> list[str]:
    """The headings of a section that are none of the groups that a changelog has."""
    return [name for name in re.findall(r"^### (.+)$", body, re.M) if name.strip() not in GROUPS]


def faults(changelog: str, version: str) -> list[str]:
    """Why the changelog doesn't describe this version; empty if it does."""
    found = sections(changelog)
    if found and found[0][0] == UNRELEASED:
        if _ENTRY.search(found[0][1]):
            return [
                f'"## {UNRELEASED}" still has entries; rename it to "## {version} - <date>", '
                "or move them to that section"
            ]
        found = found[1:]
    if not found or found[0][0].split(" - ")[0] != version:
        return [f'there is no section "## {version} - <date>" at the top; write what users gain']
    title, body = found[0]
    return [
        *([] if _dated(title) else [f'"## {title}" has no date such as 2026-11-25 behind the version']),
        *([] if _ENTRY.search(body) else [f'"## {title}" has no entries']),
        *(f'"### {name}" is none of {", ".join(GROUPS)}' for name in odd_groups(body)),
    ]


def _dated(title: str) -> bool:
    """Whether a section's title ends with a day, as in "0.1.0 - 2026-11-25"."""
    try:
        date.fromisoformat(title.partition(" - ")[2])
    except ValueError:
        return False
    return True
