"""The result of a consolidation, in numbers and in lines for people. Pure."""

from dataclasses import dataclass, replace

from discoclaw.core.event import Commit
from discoclaw.core.item import Sensitivity


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a report, and the sensitivity of the items it quotes."""

    text: str
    sensitivity: Sensitivity = "normal"


@dataclass(frozen=True, slots=True)
class ConsolidationReport:
    """The result of a consolidation: numbers, and lines for people.

    `refused` is for the log: why proposals were rejected. `branch` has been consolidated up to the commit
    `head`, except the items `left` (ids). `commit` is the one that was recorded, None if there was nothing to
    do.
    """

    merged: int = 0
    outdated: int = 0
    questions: int = 0
    lines: tuple[Line, ...] = ()
    refused: tuple[str, ...] = ()
    branch: str = ""
    head: str | None = None
    left: frozenset[str] = frozenset()
    commit: Commit | None = None

    def __add__(self, other: "ConsolidationReport") -> "ConsolidationReport":
        """Both reports as one. Branch, head, left and commit are this one's."""
        return replace(
            self,
            merged=self.merged + other.merged,
            outdated=self.outdated + other.outdated,
            questions=self.questions + other.questions,
            lines=self.lines + other.lines,
            refused=self.refused + other.refused,
        )

    @property
    def counts(self) -> dict[str, int]:
        """How many changes of each kind were made, as stored in the commit's metadata."""
        return {"merged": self.merged, "outdated": self.outdated, "questions": self.questions}

    @property
    def summary(self) -> str:
        """The numbers in words: "2 duplicates merged, 1 outdated, 1 question"; "" if nothing was done."""
        parts = (
            (self.merged, "duplicate merged" if self.merged == 1 else "duplicates merged"),
            (self.outdated, "outdated"),
            (self.questions, "question" if self.questions == 1 else "questions"),
        )
        return ", ".join(f"{count} {what}" for count, what in parts if count)

    def text(self, *, in_private: bool) -> str:
        """The report for people. Unless `in_private`, lines about private items read "(private)"."""
        head = f"Tidied: {self.summary}." if self.summary else "Nothing to tidy."
        shown = (
            line.text if line.sensitivity == "normal" or in_private else "(private)" for line in self.lines
        )
        return "\n".join([head, *(f"- {line}" for line in shown)])
