"""Mermaid's own verdicts on gitGraphs, and how to renew them in `gitgraphs.json`.

npm install --prefix tests/show/mermaid --no-package-lock
python -m tests.show.record
"""

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

from discoclaw.core.errors import Refused
from discoclaw.core.history import History
from discoclaw.show.graph import mermaid
from tests.show.histories import NAMES, NASTY, Story, step, told

HERE = Path(__file__).parent
VERDICTS = HERE / "gitgraphs.json"
INSTALLED = shutil.which("node") is not None and (HERE / "mermaid/node_modules/mermaid").is_dir()

BY_HAND = (
    "gitGraph\n",
    'gitGraph\n    branch "x"\n    commit id: "a"\n    checkout "main"\n    commit id: "b"\n',
    'gitGraph\n    commit id: "a"\n    branch "x"\n    branch "x"\n',
    'gitGraph\n    commit id: "a"\n    checkout "x"\n',
    'gitGraph\n    branch "main"\n',
    'gitGraph\n    commit id: "a"\n    branch "x"\n    merge "main" id: "b"\n',
    'gitGraph\n    commit id: "a"\n    branch "x"\n    checkout "main"\n    merge "x" id: "b"\n',
    'gitGraph\n    branch "x"\n    commit id: "a"\n    checkout "main"\n    merge "x" id: "b"\n',
    'gitGraph\n    commit id: "a"\n    merge "main" id: "b"\n',
    'gitGraph\n    commit id: "a"\n    merge "y" id: "b"\n',
    'gitGraph\n    commit id: "a"\n    branch "x"\n    commit id: "b"\n    checkout "main"\n'
    '    commit id: "c"\n    merge "x" id: "b"\n',
    'gitGraph\n    branch "x"\n    commit id: "a"\n    branch "y"\n    commit id: "b"\n    checkout "x"\n'
    '    merge "y" id: "c" tag: "t" tag: "HEAD"\n',
    'gitGraph\n    commit id: "a" type: REVERSE tag: "undo 1"\n',
    "gitGraph\n    branch cherry-pick\n",
    'gitGraph\n    commit id: "a\n',
    'gitGraph\n    commit id: "a" b"\n',
    'gitGraph\n    commit id: "a"\n    pull "x"\n',
    "gitgraph\n",
)
"""What Mermaid takes and what it refuses, near what we write."""


def ask(texts: list[str]) -> list[dict[str, Any]]:
    """What Mermaid makes of diagrams: {commits, branches} or {error}."""
    asked = subprocess.run(
        ["node", "read.mjs"],
        cwd=HERE / "mermaid",
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    said: list[dict[str, Any]] = json.loads(asked.stdout)
    return said


def random_history(seed: int) -> History:
    """A history that people and forgers may have brought about; the same for the same seed."""
    dice = random.Random(seed)
    story = Story()
    for _ in range(dice.randint(1, 24)):
        try:
            step(
                story, dice.randint(0, 11), dice.randint(0, 7), dice.randint(0, 40), dice.choice(NASTY), NAMES
            )
        except Refused:
            continue
    return story.history


def main() -> None:
    texts = [*BY_HAND, mermaid(told().history), *(mermaid(random_history(seed)) for seed in range(40))]
    verdicts = [{"text": text, "said": said} for text, said in zip(texts, ask(texts), strict=True)]
    VERDICTS.write_text(json.dumps(verdicts, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
