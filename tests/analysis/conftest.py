"""Fixtures over the runs of made_up_runs.py."""

from __future__ import annotations

import made_up_runs
import pytest
from made_up_runs import RunMaker

from hft.analysis.run_data import RunData


@pytest.fixture
def random_run() -> RunMaker:
    """Make a random run with an exact account: `random_run(seed, orders=..., facts=[...])`."""
    return made_up_runs.make_run


@pytest.fixture
def three_fills() -> RunData:
    return made_up_runs.three_fills()


@pytest.fixture
def empty_run() -> RunData:
    return made_up_runs.empty_run()


@pytest.fixture
def rich_run() -> RunData:
    return made_up_runs.rich_run()
