"""Live sessions on the wall clock: in this process, or as the command in one of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hft import run_folder
from hft.journal import JOURNAL
from hft.live import session
from hft.live.verify import verify_run
from hft.plan import prepare

STRATEGIES = Path(__file__).parent / "strategies"
BUSY = {"data.synth.symbols": ["AAA", "BBB"], "data.synth.messages_per_s": 10_000.0}


def pytest_configure(config):
    config.addinivalue_line("markers", "parity: live sessions fed back to the byte, long ones too")


@pytest.fixture(scope="session")
def everything(tmp_path_factory):
    """A strategy file with its bundle beside it."""
    from hft import Features, OnTouch
    from hft.features import imbalance, micro_price_minus_mid, ofi, spread
    from hft.inference.bundle import save_bundle
    from hft.inference.card import Card, LayerEntry, Scaler, Training, entries_of

    folder = tmp_path_factory.mktemp("everything")
    features = Features(
        spread(),
        imbalance(5),
        ofi(3, "100ms"),
        micro_price_minus_mid(),
        trigger=OnTouch(sizes=True),
    )
    entries, trigger = entries_of(features)
    rng = np.random.default_rng(3)
    kernel = [rng.normal(0, 0.4, shape).astype(np.float32) for shape in [(4, 32), (8, 32), (8, 2)]]
    weights = [
        {"kernel": kernel[0], "recurrent": kernel[1], "bias": np.zeros(32, np.float32)},
        {"kernel": kernel[2], "bias": np.zeros(2, np.float32)},
    ]
    card = Card(
        format=2,
        name="tiny",
        outputs=("down", "up"),
        horizon_ns=500_000_000,
        latency_ns=2_000_000,
        warm_up_rows=50,
        trigger=trigger,
        features=entries,
        layers=(
            LayerEntry(kind="lstm", units=8),
            LayerEntry(kind="dense", units=2, activation="softmax"),
        ),
        scaler=Scaler(mean=(1.0, 0.0, 0.0, 0.0), scale=(1.0, 0.5, 50.0, 0.5), clip=5.0),
        training=Training(data="none", data_sha256="", start_ts=0, end_ts=1, rows=0, seed=3),
    )
    save_bundle(folder / "tiny.bundle", card, weights)
    file = folder / "everything.py"
    file.write_bytes((STRATEGIES / "everything.py").read_bytes())
    return file


@pytest.fixture(scope="session")
def strategies():
    """Folder of this room's strategies."""
    return STRATEGIES


@pytest.fixture(scope="session")
def busy():
    """Settings: two symbols of 10,000 messages a second each."""
    return BUSY


@pytest.fixture
def trade(tmp_path):
    """Runs a strategy file live for `seconds` in this process; gives folder and outcome."""

    def run(strategy, seconds, **settings):
        plan = prepare(strategy, "synth", recipe={}, settings=settings)
        folder = run_folder.new_folder("live", plan.recipe.name, tmp_path)
        outcome = session.run_sim(plan, folder, round(seconds * 1e9))
        run_folder.write_outcome(folder, plan, outcome)
        return folder, outcome

    return run


@pytest.fixture
def same():
    """Asserts that a run verifies without a difference, and gives the verification."""

    def check(folder):
        result = verify_run(folder)
        assert result.differences == 0, str(result)
        return result

    return check


class Command:
    """`hft` in a process of its own."""

    def __init__(self, *args, **kwargs):
        code = "from hft.cli.main import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **kwargs,
        )

    def wait(self, timeout=60):
        out, err = self.process.communicate(timeout=timeout)
        return self.process.returncode, out, err


@pytest.fixture
def hft():
    """Starts `hft` with arguments; what still runs at the end of the test is killed."""
    started = []

    def start(*args, **kwargs):
        started.append(Command(*args, **kwargs))
        return started[-1]

    yield start
    for command in started:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()


@pytest.fixture
def running():
    """Gives the folder of a session under a base folder once its journal holds some records."""

    def find(base, records=200, timeout_s=30.0):
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            for path in base.glob("live-*/journal.bin"):
                head = np.fromfile(path, JOURNAL, records)
                if len(head) == records and head["kind"].all():
                    return path.parent
            time.sleep(0.05)
        raise AssertionError(f"no session under {base} within {timeout_s} s")

    return find
