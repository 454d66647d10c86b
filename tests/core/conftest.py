"""The published golden values, as fixtures."""

import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parent.parent / "vectors"


@pytest.fixture(scope="session")
def durable_vectors() -> dict[str, Any]:
    """Ids, lines and file names of the durable files' design."""
    return json.loads((VECTORS / "durable.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def ledger_vectors() -> dict[str, Any]:
    """Ids of events and commits of the ledger's design."""
    return json.loads((VECTORS / "ledger.json").read_text(encoding="utf-8"))
