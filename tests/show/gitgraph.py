"""A strict reader of the gitGraph lines that we write, after Mermaid's own, with Mermaid's rules.

It is narrower than Mermaid's grammar: one statement a line, every name and id a quoted string without a
character that means anything to Mermaid, no id twice. What it takes, Mermaid 11.17.2 takes with the same
result: `gitgraphs.json` has Mermaid's own verdicts, and `mermaid/` the way to ask it anew.
"""

import re
from typing import Any

_STRING = r'"[^"\'\\#;<=>{}%&`$\x00-\x1f\x7f-\x9f\u2028\u2029]*"'
_STATEMENT = re.compile(
    rf"    (?:(?P<word>branch|checkout) (?P<name>{_STRING})"
    rf"|(?:commit|(?P<merge>merge) (?P<other>{_STRING})) id: (?P<id>{_STRING})(?P<type> type: REVERSE)?"
    rf"(?P<tags>(?: tag: {_STRING})*))"
)
_COMMENT = re.compile(r"    %% [0-9]+ earlier commits? left out")


class NoGitGraph(Exception):
    """Mermaid would not draw it, or it is not of our subset."""


def read(text: str) -> dict[str, Any]:
    """The commits {id, branch, parents, tags} and branches, in order. Raises NoGitGraph with the reason."""
    if not text.endswith("\n"):
        raise NoGitGraph("the last line is not ended")
    first, *lines = text[:-1].split("\n")
    if first != "gitGraph":
        raise NoGitGraph(f"it begins with {first!r}")
    graph = _Graph()
    for line in lines:
        if _COMMENT.fullmatch(line):
            continue
        match = _STATEMENT.fullmatch(line)
        if match is None:
            raise NoGitGraph(f"no statement: {line!r}")
        graph.take({name: value for name, value in match.groupdict().items() if value is not None})
    return {"commits": list(graph.commits.values()), "branches": list(graph.heads)}


class _Graph:
    """What Mermaid has drawn so far, and on which branch it stands."""

    def __init__(self) -> None:
        self.commits: dict[str, dict[str, Any]] = {}
        self.heads: dict[str, str | None] = {"main": None}
        self._at = "main"

    def take(self, said: dict[str, str]) -> None:
        if "word" in said:
            name = said["name"][1:-1]
            if (name in self.heads) == (said["word"] == "branch"):
                raise NoGitGraph(f"{said['word']}: {name!r} exists, or does not")
            if said["word"] == "branch":
                self.heads[name] = self.heads[self._at]
            self._at = name
            return
        key = said["id"][1:-1]
        if not key or key in self.commits:
            raise NoGitGraph(f"the id {key!r} is none, or not the first of its kind")
        mine = self.heads[self._at]
        parents = [] if mine is None else [mine]
        if "merge" in said:
            parents.append(self._merged(said["other"][1:-1], mine))
        tags = re.findall(rf" tag: ({_STRING})", said["tags"])
        tags = [tag[1:-1] for tag in tags]
        self.commits[key] = {"id": key, "branch": self._at, "parents": parents, "tags": tags}
        self.heads[self._at] = key

    def _merged(self, other: str, mine: str | None) -> str:
        theirs = self.heads.get(other)
        if mine is None or theirs is None or other == self._at or mine == theirs:
            raise NoGitGraph(f"merge: {other!r} cannot be merged here")
        if self.commits[mine]["branch"] == other:
            raise NoGitGraph(f"merge: the newest commit is on {other!r} itself")
        return theirs
