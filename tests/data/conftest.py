"""Where market data lies, and `hft.adapters` for a checkout that was not installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import hft

ROOT = Path(__file__).parents[2]

try:
    import hft.adapters
except ModuleNotFoundError:  # not built yet: the package's second folder is mapped by the build
    import importlib.util
    import sys

    found = importlib.util.spec_from_file_location(
        "hft.adapters",
        ROOT / "adapters" / "__init__.py",
        submodule_search_locations=[str(ROOT / "adapters")],
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["hft.adapters"] = module
    found.loader.exec_module(module)
    hft.adapters = module


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real market data, never part of the repository."""
    path = Path(os.environ.get("HFT_DATA", ROOT.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no market data at {path}; set HFT_DATA")
    return path
