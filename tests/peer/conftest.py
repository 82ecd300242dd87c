"""Where the peer is."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest


@pytest.fixture(scope="session")
def peer_python() -> str:
    named = os.environ.get("HFT_PEER_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("hftbacktest") is None:
        pytest.skip(
            "no hftbacktest: pip install -e '.[peer]', or name its Python in HFT_PEER_PYTHON"
        )
    return sys.executable
