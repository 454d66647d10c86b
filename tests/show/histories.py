"""Short ways to make histories with branches for the tests of what is shown: by hand, and at random."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from discoclaw.core import merge
from discoclaw.core.draft import Draft, Origin
from discoclaw.core.errors import Refused
from discoclaw.core.event import Commit, Event, Record, Ref
from discoclaw.core.history import History, union
from discoclaw.core.item import Item, Sensitivity
from discoclaw.core.merge import MergeContext, MergeResult
from discoclaw.core.times import iso_ms
from discoclaw.core.view import View
from tests.core.builders import MINUTE, NOW, stated


class Story:
    """One subject's history in the making, a minute for each record."""

    def __init__(self, records: tuple[Record, ...] = (), now: int = NOW) -> None:
        self.records: list[Record] = list(records)
        self.now = now

    @property
    def history(self) -> History:
        return History(self.records)

    def view(self, branch: str = "main") -> View:
        history = self.history
        return history.view(history.branch(branch).head)

    def tick(self, ms: int = MINUTE) -> int:
        self.now += ms
        return self.now

    def keep(self, record: Record | None) -> None:
        if record is not None:
            self.records.append(record)

    def say(
        self,
        text: str,
        branch: str = "main",
        kind: str = "fact",
        *,
        why: str = "said by command",
        origin: Origin | None = None,
        marked: Sensitivity = "normal",
        item: Item | None = None,
        **metadata: Any,
    ) -> Commit:
        """Remember something on a branch; `item` is one that gets these words. Always makes a commit."""
        draft = Draft(self.view(branch), now_ms=self.tick())
        draft.upsert(kind, text, origin or stated(), given_id=item.id if item else None, marked=marked)
        commit = draft.commit(why, branch=self.history.branch(branch).name, empty=True, **metadata)
        assert commit is not None
        self.keep(commit)
        return commit

    def draft(self, branch: str = "main") -> Draft:
        return Draft(self.view(branch), now_ms=self.tick())

    def end(self, draft: Draft, why: str = "a test", branch: str = "main", **metadata: Any) -> Commit:
        commit = draft.commit(why, branch=branch, **metadata)
        assert commit is not None
        self.keep(commit)
        return commit

    def bare(self, subject: str, predicate: str, value: str, **given: Any) -> Commit:
        """A commit with an event that is nothing but a triple."""
        event = Event(
            event_type=given.pop("event_type", "add"),
            subject=subject,
            predicate=predicate,
            object=value,
            timestamp=iso_ms(self.tick()),
            **given,
        )
        commit = Commit(
            branch="main",
            events=(event,),
            message="a triple",
            parent_id=self.view().head,
            timestamp=iso_ms(self.now),
        )
        self.keep(commit)
        return commit

    def fork(self, name: str, persona: str = "", start: str = "main") -> None:
        branches = self.history.branches
        self.keep(branches.create(name, persona, now_ms=self.tick(), start=branches.named(start).head))

    def fork_at(self, name: str, commit: str | None) -> None:
        self.keep(Ref(action="create", branch=name, head=commit, timestamp=iso_ms(self.tick())))

    def switch(self, name: str, **metadata: Any) -> None:
        self.keep(self.history.branches.switch(name, now_ms=self.tick(), **metadata))

    def delete(self, name: str) -> None:
        self.keep(self.history.branches.delete(name, now_ms=self.tick()))

    def act(self, branch: str = "main", **metadata: Any) -> MergeContext:
        return MergeContext(branch, stated(), self.tick(), metadata=tuple(metadata.items()))

    def merge(self, source: str, into: str = "main") -> MergeResult:
        return self.brought(merge.merge(self.history, source, self.act(into)))

    def pick(self, commit: str, onto: str = "main") -> MergeResult:
        return self.brought(merge.cherry_pick(self.history, commit, self.act(onto)))

    def revert(self, commit: str, on: str = "main") -> MergeResult:
        return self.brought(merge.revert(self.history, commit, self.act(on)))

    def restore(self, commit: str, on: str = "main") -> MergeResult:
        return self.brought(merge.restore(self.history, commit, self.act(on)))

    def brought(self, brought: MergeResult) -> MergeResult:
        self.keep(brought.commit)
        return brought


def told() -> Story:
    """A story with a persona, a merge, a cherry-pick and an undo; golden values rest on it."""
    story = Story()
    story.say("User prefers tabs.", kind="preference", by="command", message="7/71")
    story.say("User lives in Graz.", by="extraction", messages=["72", "73"])
    story.fork("coding", "I write Python")
    story.switch("coding", by="command")
    story.say("User writes Rust.", "coding", why="learned from talk", by="extraction")
    story.say("User has a cat.", why="learned from talk")
    story.merge("coding")
    story.fork("ideas")
    rust = story.say("User builds a boat.", "ideas", kind="project")
    story.say("User likes tea.", "coding", kind="preference")
    story.pick(rust.id, "coding")
    cat = story.say("User has a dog.")
    story.revert(cat.id)
    return story


def long_story(commits: int) -> Story:
    """A story of that many commits on main and two personas, made without folding it again and again."""
    story = Story()
    heads: dict[str, str | None] = {"main": None, "a": None, "b": None}
    for number in range(commits):
        branch = ("main", "a", "b")[number % 3]
        commit = Commit(
            branch=branch,
            events=(),
            message=f"change {number}",
            parent_id=heads[branch],
            timestamp=iso_ms(story.tick()),
        )
        heads[branch] = commit.id
        story.keep(commit)
    return story


NASTY = (
    'say "hi" and \'bye\' \\" \\n',
    "two\nlines\r\ncommit deadbeefdeadbeef [main]\u2028x\x85y",
    "\x1b[31mred\x07 \u202eflip \u200bzero",
    "%%{init: {'theme':'dark'}}%% %% comment",
    "#quot;#35; <script>alert(1)</script> $$x$$ `code`",
    "雪 🦄 👩‍👩‍👧 ü ا ک ",
    "end: x; merge main id: y } {",
    "---\ntitle: x\n---",
    "",
)
NAMES = (
    "merge", "commit", "branch", "checkout", "switch", "cherry-pick", "order", "gitgraph", "id", "tag",
    "title", "acctitle", "accdescr", "lr", "tb", "true", "end", "über", "東京", "кот", "a-b_c", "x",
    "constructor",
    "tostring", "1a-",
)  # fmt: skip
"""Names of branches that mean something to Mermaid or JavaScript, or are of other scripts."""

_messages = st.one_of(st.sampled_from(NASTY), st.text(st.characters(), max_size=30))
_step_of = st.tuples(st.integers(0, 11), st.integers(0, 7), st.integers(0, 40), _messages)
_steps = st.one_of(st.lists(_step_of, max_size=4), st.lists(_step_of, min_size=12, max_size=30))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Any history that people, or people and another replica, can bring about; and some that forgers can."""
    story = Story()
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    for what, which, where, message in draw(_steps):
        try:
            step(story, what, which, where, message, names)
        except Refused:
            continue
    if draw(st.booleans()) and story.records:
        cut = draw(st.integers(0, len(story.records)))
        other = Story(tuple(story.records[:cut]), story.now + 7 * MINUTE)
        for what, which, where, message in draw(_steps):
            try:
                step(other, what, which, where, message, names)
            except Refused:
                continue
        return History(union(story.records, other.records))
    return story.history


def step(story: Story, what: int, which: int, where: int, message: str, names: Sequence[str]) -> None:
    history = story.history
    known = list(history.branches.all)
    branch, other = known[which % len(known)], known[where % len(known)]
    commits = list(history.commits)
    if what <= 3:
        story.say(f"thing {where}", branch, why=message.encode("utf-8", "replace").decode())
    elif what == 4:
        story.fork(names[where % len(names)], start=branch)
    elif what == 5:
        story.delete(branch)
    elif what == 6:
        story.switch(branch)
    elif what <= 8:
        story.merge(other, branch)
    elif not commits:
        return
    elif what == 9:
        story.pick(commits[where % len(commits)], branch)
    elif what == 10:
        story.revert(commits[where % len(commits)], branch)
    else:
        story.fork_at(names[where % len(names)], commits[where % len(commits)])


def named(history: History, text: str) -> str:
    """A text in which the ids of the first 15 commits are 111…, 222…, to fff…, in their order."""
    for number, key in enumerate(history.commits, start=1):
        digit = f"{number:x}"
        text = text.replace(key, digit * 16).replace(key[:8], digit * 8)
    return text
