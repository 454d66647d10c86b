"""What every test of the contract may use: see `world`."""

from pathlib import Path

import pytest

from tests.contract.world import Start, starting


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """`async with start(**settings) as world`."""
    return starting(tmp_path)
