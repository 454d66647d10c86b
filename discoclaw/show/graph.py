"""A history as a graph: lanes and edges, and two text formats, Mermaid's gitGraph and a timeline.

A lane is a branch from its creation to its deletion; a name that was used twice has two lanes. A commit is on
the lane of its branch. Its first parent is the commit before it there, or the lane's base.
Knows nothing about pictures or Discord.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from discoclaw.core.event import Commit
from discoclaw.core.history import MAIN, Branches, History
from discoclaw.core.text import clip
from discoclaw.core.times import ms_of_iso
from discoclaw.show.words import GIT, UTC_TIMES, Times, Vocabulary, acts, count, line, when, word
from discoclaw.show.words import day as as_day

SHORTEST = 8
"""Digits of a commit's id that are always shown."""
MOST_IN_MERMAID = 300
"""Commits in a gitGraph. Mermaid refuses text of more than 50,000 characters (its `maxTextSize`)."""
LONGEST_NAME = 32
_LONGEST_LABEL = 40


@dataclass(slots=True)
class Lane:
    """A branch from its creation to its deletion. `name` is unique among lanes; `base` is where it forked."""

    name: str
    base: str | None = None
    alive: bool = True
    commits: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from a commit to a parent, which runs down in a column. The parent may be below the last row."""

    parent: str
    column: int


@dataclass(frozen=True, slots=True)
class Row:
    """One commit in a drawing, where the newest is at the top.

    `above` and `below` are the columns before and after this row: the commit that each leads down to, or
    None.
    """

    commit: Commit
    column: int
    edges: tuple[Edge, ...]
    above: tuple[str | None, ...]
    below: tuple[str | None, ...]


class Graph:
    """The lanes of a history, in the order of their creation; `main` is the first."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.commits: Sequence[Commit] = tuple(history.commits.values())
        self.lanes = [Lane(MAIN)]
        self.lane_of: dict[str, int] = {}
        self._digits = digits(history.commits)
        self._rank = {commit.id: rank for rank, commit in enumerate(self.commits)}
        self._current = {MAIN: 0}
        taken = {MAIN}
        branches = Branches()
        for record in history.records:
            name, before = record.branch, branches
            branches = before.after(record)
            if name not in branches.all:  # a ref of the whole ledger has no name; else the branch was deleted
                if name in before.all:
                    self.lanes[self._current.pop(name)].alive = False
            elif name not in before.all:
                self._current[name] = self._fork(name, branches.all[name].base, taken)
            if isinstance(record, Commit):
                self.lane_of[record.id] = self._current[name]
                self.lanes[self._current[name]].commits.append(record.id)
        self._tips: dict[str, list[int]] = {}
        for number, lane in enumerate(self.lanes):
            tip = lane.commits[-1] if lane.commits else lane.base if lane.alive else None
            if tip is not None:
                self._tips.setdefault(tip, []).append(number)

    def _fork(self, name: str, base: str | None, taken: set[str]) -> int:
        plain, number = word(name, LONGEST_NAME), 1
        unique = plain
        while unique in taken:
            number += 1
            unique = f"{plain} ({number})"
        taken.add(unique)
        self.lanes.append(Lane(unique, base if base in self.lane_of else None))
        return len(self.lanes) - 1

    def short(self, commit_id: str) -> str:
        """The first digits of a commit's id: at least 8, and enough to be unique here."""
        return word(commit_id)[: self._digits]

    def parents(self, commit_id: str) -> list[str]:
        """A commit's parents. One that is newer can only come from a forged merge, and is left out."""
        return [one for one in self.history.parents(commit_id) if self._rank[one] < self._rank[commit_id]]

    def head(self) -> str | None:
        """The commit that HEAD is at; None if its branch has none."""
        branches = self.history.branches
        return branches.all[branches.current].head

    def lane_named(self, branch: str) -> int:
        """The number of an existing branch's lane."""
        return self._current[branch]

    def tips(self, commit_id: str) -> list[int]:
        """The lanes whose newest commit this is, including deleted ones."""
        return self._tips.get(commit_id, [])

    def rows(self, limit: int | None = None) -> Iterator[Row]:
        """The newest commits, at most `limit`, each in a column such that lines cross only at commits.

        The first column is reserved for `main`. A line runs down in its column to the commit it leads to.
        """
        columns: list[str | None] = [self.lanes[0].commits[-1] if self.lanes[0].commits else None]
        left = len(self.commits) if limit is None else min(max(0, limit), len(self.commits))
        for commit in reversed(self.commits[len(self.commits) - left :]):
            above = tuple(columns)
            waiting = [place for place, wanted in enumerate(columns) if wanted == commit.id]
            column = waiting[0] if waiting else _free(columns, self.lane_of[commit.id] != 0)
            for place in (*waiting, column):
                columns[place] = None
            edges = []
            for number, parent in enumerate(self.parents(commit.id)):
                # The first parent is below, except for a merge that is main's first commit: then that parent
                # is on another branch, and gets a column beside main's.
                if number == 0 and (column != 0 or self.lane_of[parent] == 0):
                    place = column
                elif parent in columns:
                    place = columns.index(parent)
                else:
                    place = _free(columns, True)
                columns[place] = parent
                edges.append(Edge(parent, place))
            while len(columns) > 1 and columns[-1] is None:  # keeps the drawing as narrow as it can be
                columns.pop()
            yield Row(commit, column, tuple(edges), above, tuple(columns))


def _free(columns: list[str | None], beside_main: bool) -> int:
    """The leftmost free column, or a new one. With `beside_main`, not the first, which is main's."""
    for place in range(int(beside_main), len(columns)):
        if columns[place] is None:
            return place
    columns.append(None)
    return len(columns) - 1


def digits(ids: Iterable[str]) -> int:
    """How many digits are needed to tell these ids apart, at least 8."""
    needed = SHORTEST  # ids with the longest common beginning are neighbours in sorted order
    for one, other in pairwise(sorted(ids)):
        while needed < len(other) and one[:needed] == other[:needed]:
            needed += 1
    return needed


# ---------------------------------------------------------------------- mermaid

# Characters with a meaning to Mermaid even inside a string (quotes, entities, HTML, directives, formulas) are
# replaced by their full-width forms, since Mermaid has no escape that works everywhere.
_WIDE = {ord(char): ord(char) + 0xFEE0 for char in "\"'\\#;<=>{}%&`$"}


def mermaid(history: History) -> str:
    """The history as a Mermaid `gitGraph` (Mermaid 11), at most its newest `MOST_IN_MERMAID` commits.

    A commit's id in the graph is its short id and its message. Mermaid can only merge the newest commit of
    another branch, and only into a branch that has commits of its own. Any other merge is drawn as a commit
    with a tag, and so are cherry-picks and reverted commits.
    """
    graph = Graph(history)
    kept = graph.commits[-MOST_IN_MERMAID:]
    drawing = _Mermaid(graph, {commit.id for commit in kept})
    lines = ["gitGraph"]
    if earlier := len(graph.commits) - len(kept):
        lines.append(f"    %% {count(earlier, 'earlier commit')} left out")
    lines += [f"    {text}" for text in drawing.start()]
    for commit in kept:
        lines += [f"    {text}" for text in drawing.commit(commit)]
    return "\n".join(lines) + "\n"


def _string(text: str, most: int) -> str:
    return f'"{clip(line(text), most).translate(_WIDE)}"'


class _Mermaid:
    """Mermaid's state while it reads the graph: the current lane, and the newest commit of each lane."""

    def __init__(self, graph: Graph, kept: set[str]) -> None:
        self._graph = graph
        self._kept = kept
        self._lane = 0
        self._heads: dict[int, str | None] = {0: None}
        self._forks: dict[str | None, list[int]] = {}
        for number, lane in enumerate(graph.lanes[1:], start=1):
            if lane.alive or kept.intersection(lane.commits):
                self._forks.setdefault(lane.base if lane.base in kept else None, []).append(number)

    def start(self) -> Iterator[str]:
        """The branches that start without a commit."""
        yield from self._branch(None)

    def _branch(self, base: str | None) -> Iterator[str]:
        """The branches that fork at a commit. They follow it directly, as Mermaid forks only where it is."""
        before = self._lane
        for number in self._forks.get(base, ()):
            yield from self._checkout(before)
            yield f"branch {self._name(number)}"
            self._lane, self._heads[number] = number, base

    def _checkout(self, lane: int) -> Iterator[str]:
        if lane != self._lane:
            yield f"checkout {self._name(lane)}"
            self._lane = lane

    def _name(self, lane: int) -> str:
        return _string(self._graph.lanes[lane].name, LONGEST_NAME + 8)

    def commit(self, commit: Commit) -> Iterator[str]:
        """One commit on its branch, and then the branches that fork there."""
        lane = self._graph.lane_of[commit.id]
        yield from self._checkout(lane)
        label = f"{self._graph.short(commit.id)} {clip(line(commit.message), _LONGEST_LABEL)}".rstrip()
        text = f"id: {_string(label, 80)}"
        done = dict(acts(commit))
        other = self._merged(lane, done.get("merge"))  # None: Mermaid cannot draw this merge as one
        tags = [
            f"{name} {self._graph.short(of)}" for name, of in done.items() if name != "merge" or other is None
        ]
        if commit.id == self._graph.head():
            tags.append("HEAD")
        if "undo" in done and other is None:
            text += " type: REVERSE"
        text += "".join(f" tag: {_string(tag, 60)}" for tag in tags)
        yield f"merge {self._name(other)} {text}" if other is not None else f"commit {text}"
        self._heads[lane] = commit.id
        yield from self._branch(commit.id)

    def _merged(self, lane: int, merged: str | None) -> int | None:
        """The lane that Mermaid can merge to bring in exactly that commit; None if it cannot."""
        mine = self._heads[lane]
        if merged is None or mine is None or mine == merged:
            return None
        home = self._graph.lane_of[mine]
        for number, head in self._heads.items():
            if head == merged and number not in (lane, home):
                return number
        return None


# ---------------------------------------------------------------------- timeline

_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_BOXES = {
    0: " ",
    _UP: "│",
    _DOWN: "│",
    _UP | _DOWN: "│",
    _LEFT: "─",
    _RIGHT: "─",
    _LEFT | _RIGHT: "─",
    _UP | _LEFT: "╯",
    _UP | _RIGHT: "╰",
    _DOWN | _LEFT: "╮",
    _DOWN | _RIGHT: "╭",
    _UP | _DOWN | _LEFT: "┤",
    _UP | _DOWN | _RIGHT: "├",
    _UP | _LEFT | _RIGHT: "┴",
    _DOWN | _LEFT | _RIGHT: "┬",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
}


def timeline(
    history: History, *, limit: int | None = None, words: Vocabulary = GIT, times: Times = UTC_TIMES
) -> str:
    """The commits by day, newest first, with the lines between them; at most `limit` commits."""
    graph = Graph(history)
    rows = list(graph.rows(limit))
    if not graph.commits:
        return f"there are no {words.commit}s yet"
    wide = max((2 * max(len(row.above), len(row.below)) for row in rows), default=0)
    head, lines, day = graph.head(), [], ""
    for row in rows:
        date, time = when(row.commit.timestamp, times).split(" ")
        if date != day:
            shown = date if words.iso_days else as_day(ms_of_iso(row.commit.timestamp))
            lines.append(f"{_through(row.above) if day else '':<{wide}}{shown}")
            day = date
        marks = [graph.lanes[graph.lane_of[row.commit.id]].name]
        marks += [f"{words.act(name)} {graph.short(other)}" for name, other in acts(row.commit)]
        marks += [words.head] if row.commit.id == head else []
        text = f"{time} {graph.short(row.commit.id)} [{', '.join(marks)}] {line(row.commit.message)}"
        lines.append(f"{_drawn(row):<{wide}}{text}")
    if earlier := len(graph.commits) - len(rows):
        lines.append(f"… {count(earlier, f'earlier {words.commit}')}")
    return "\n".join(lines)


def _through(columns: Sequence[str | None]) -> str:
    return " ".join(" " if wanted is None else "│" for wanted in columns)


def _drawn(row: Row) -> str:
    """The graph part of one row: a cell for each column, and one between neighbours."""
    width = max(len(row.above), len(row.below), row.column + 1)
    cells = [0] * (2 * width - 1)
    for place in range(width):
        above = row.above[place] if place < len(row.above) else None
        below = row.below[place] if place < len(row.below) else None
        cells[2 * place] = (_UP if above is not None else 0) | (_DOWN if below is not None else 0)
        if above == row.commit.id:
            _join(cells, row.column, place)
    for edge in row.edges:
        _join(cells, row.column, edge.column)
    drawn = [_BOXES[cell] for cell in cells]
    drawn[2 * row.column] = "*"
    return "".join(drawn).rstrip()


def _join(cells: list[int], one: int, other: int) -> None:
    """Draw a horizontal line between two columns."""
    left, right = 2 * min(one, other), 2 * max(one, other)
    for place in range(left, right):
        cells[place] |= _RIGHT
        cells[place + 1] |= _LEFT
