"""The report of an eval: figures with their gates, groups, and each case that failed. Text and JSON. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discoclaw.evals.figures import Figure, Measure, figures, percent
from discoclaw.evals.judge import Verdict
from discoclaw.show.words import count, line

LONGEST = 300
"""Longest line about a case, in UTF-16 units."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of an eval. `what` is its name, `model` the model and where it is."""

    what: str
    model: str
    measures: Sequence[Measure]
    verdicts: Sequence[Verdict]
    runs: int

    @property
    def figures(self) -> list[Figure]:
        return figures(self.measures, self.verdicts, self.runs)

    @property
    def passed(self) -> bool:
        """Whether every gate is kept."""
        return all(figure.passed for figure in self.figures)

    @property
    def estimated(self) -> bool:
        """Whether a provider did not count its tokens."""
        return any(one.scores.get("estimated", (0, 0))[0] for one in self.verdicts)

    def failures(self) -> list[tuple[Verdict, int]]:
        """For each case that failed, its first failing run, and how many runs failed."""
        failed: dict[str, list[Verdict]] = {}
        for one in self.verdicts:
            if one.faults:
                failed.setdefault(one.id, []).append(one)
        return [(runs[0], len(runs)) for runs in failed.values()]

    def groups(self) -> list[tuple[str, int, float, float | None]]:
        """Each group: its name, its cases, the share of them without a fault, and its recall."""
        rows = []
        for name in dict.fromkeys(one.group for one in self.verdicts):
            own = [one for one in self.verdicts if one.group == name]
            clean = sum(not one.faults for one in own) / len(own)
            recall = [one.scores[self.measures[0].name] for one in own if self.measures[0].name in one.scores]
            chances = sum(chance for _, chance in recall)
            share = sum(hit for hit, _ in recall) / chances if chances else None
            rows.append((name, len({one.id for one in own}), clean, share))
        return rows

    # ------------------------------------------------------------------ text

    def text(self) -> str:
        """The report for people."""
        cases = len({one.id for one in self.verdicts})
        head = f"{self.what}: {count(cases, 'case')}, {count(self.runs, 'run')}, {self.model}"
        parts = [head, self._figures_text(), self._groups_text(), self._failures_text(), self._last()]
        return "\n\n".join(part for part in parts if part)

    def _figures_text(self) -> str:
        rows = [("", "mean", "worst", "gate", "")]
        for one in self.figures:
            measure = one.measure
            about = " (estimated)" if measure.name.startswith("tokens") and self.estimated else ""
            kept = "" if not measure.gated or one.worst is None else "kept" if one.passed else "MISSED"
            values = measure.shown(one.mean), measure.shown(one.worst)
            rows.append((measure.title + about, *values, measure.gate, kept))
        return _table(rows)

    def _groups_text(self) -> str:
        rows = [("group", "cases", "without a fault", self.measures[0].name, "")]
        for name, cases, clean, share in self.groups():
            rows.append((name, str(cases), percent(clean), percent(share) if share is not None else "–", ""))
        return _table(rows)

    def _failures_text(self) -> str:
        blocks = []
        for one, failed in self.failures():
            runs = f", {failed} of {count(self.runs, 'run')}" if self.runs > 1 else ""
            lines = [f"{one.id} ({one.group}{runs})"]
            lines += [f"  {line(fault, LONGEST)}" for fault in one.faults]
            lines.append("  the result:" if one.ledger else "  nothing was changed")
            lines += [f"    {line(text, LONGEST)}" for text in one.ledger]
            blocks.append("\n".join(lines))
        return "\n".join(["Cases with faults", "", *blocks]) if blocks else "No case has a fault."

    def _last(self) -> str:
        missed = [one.measure.title for one in self.figures if not one.passed]
        if missed:
            return f"Missed: {'; '.join(missed)}."
        return "Every gate is kept."

    # ------------------------------------------------------------------ JSON

    def json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "eval": self.what.lower(),
            "model": self.model,
            "runs": self.runs,
            "passed": self.passed,
            "tokens_estimated": self.estimated,
            "figures": {
                one.measure.name: {
                    "mean": one.mean,
                    "worst": one.worst,
                    "runs": list(one.runs),
                    "gate": {"least": one.measure.least, "most": one.measure.most},
                    "passed": one.passed,
                }
                for one in self.figures
            },
            "groups": {
                name: {"cases": cases, "without_a_fault": clean, self.measures[0].name: share}
                for name, cases, clean, share in self.groups()
            },
            "cases": [
                {"id": one.id, "group": one.group, "run": one.run + 1, "faults": one.faults}
                | {"ledger": one.ledger}
                for one in self.verdicts
                if one.faults
            ],
        }


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    """Columns of equal width; all but the first are aligned right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
