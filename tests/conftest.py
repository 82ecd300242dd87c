"""Where market data lies, and the profile of `make nightly`."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("nightly", max_examples=20_000, deadline=None)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real market data, never part of the repository."""
    root = Path(__file__).resolve().parents[1]
    path = Path(os.environ.get("HFT_DATA", root.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no market data at {path}; set HFT_DATA")
    return path
