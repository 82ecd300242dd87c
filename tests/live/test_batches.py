"""Rows of several instruments computed together in a live session."""

import shutil
import time
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from made_models import add_step_part, make_bundle
from made_swaps import asked_after
from naive_reuse import linear_softmax

from hft import run_folder
from hft.features import Every, Features, imbalance, spread
from hft.inference.backends import Backend, State, open_backend
from hft.journal import JOURNAL, RecordKind
from hft.live import session, verify
from hft.live.swap_request import swap
from hft.plan import prepare

TOGETHER = Features(spread(), imbalance(5), trigger=Every("10ms"))
SYMBOLS = [f"S{i}" for i in range(6)]
MARKET = {"data.synth.symbols": SYMBOLS, "data.synth.messages_per_s": 1_000.0}
BATCHES = {**MARKET, "latency.server.max_batch": 8}
WARM_UP = 20
STRATEGY = """
from hft import BUY, SELL, Model, Strategy


class Asking(Strategy):
    model = Model("asked")

    def on_signal(self, s):
        self.submit(s.instrument, BUY if s["up"] > 0.5 else SELL, 1, cause=s)
"""


class Sums(Backend):
    """Python of a user's own, which says the sum of a stream's rows; it keeps its calls' sizes."""

    name = "onnx"
    calls: ClassVar[list[int]] = []
    fails_from: int = 1 << 30

    def __init__(self, bundle, tier, precision, threads):
        super().__init__(bundle, tier, precision)

    def _state(self):
        state = Memory(self)
        state.sum = 0.0
        return state

    def _step(self, state, row, out):
        self._batch([state], row[None], out[None])

    def _batch(self, states, rows, out):
        Sums.calls.append(len(states))
        if len(Sums.calls) > Sums.fails_from and len(states) > 1:
            raise RuntimeError("the library gave up")
        for state, row, answer in zip(states, rows, out, strict=True):
            state.sum += row[0] + row[1]
            answer[:] = state.sum

    def _window(self, state, rows, out):
        raise NotImplementedError

    def _reset(self, state):
        state.sum = 0.0


class Memory(State):
    __slots__ = ("sum",)


@pytest.fixture
def asking(tmp_path):
    """A strategy file, and beside it the bundle of its model."""
    (tmp_path / "asking.py").write_text(STRATEGY)
    return tmp_path / "asking.py"


def bundle_of(kind, folder, seed=1):
    more = {"window_rows": 15} if kind == "window" else {}
    bundle = make_bundle(folder, seed, features=TOGETHER, **more)
    return add_step_part(bundle) if kind in ("onnx", "python") else bundle


def prepared(kind, folder, monkeypatch):
    """A bundle for the strategy, and the settings that choose what computes it."""
    settings = dict(BATCHES)
    if kind in ("onnx", "python"):
        pytest.importorskip("onnx")
        settings["models.model.backend"] = "onnx"
    if kind == "onnx":
        pytest.importorskip("onnxruntime")
    if kind == "python":
        monkeypatch.setattr("hft.inference.backends.onnx.OnnxBackend", Sums)
        monkeypatch.setattr(Sums, "calls", [])
    return bundle_of(kind, folder / "asked.bundle"), settings


def batches(folder):
    """How many rows each batch had that the session's clock began."""
    journal = run_folder.read_journal(folder)
    return journal["a"][journal["kind"] == RecordKind.BATCH]


def rows_of(folder):
    """Features rows of each instrument."""
    rows = {i: [] for i in range(len(SYMBOLS))}

    def kept(keys, values):
        for (_, instrument, _), row in zip(keys, values.reshape(-1, 2), strict=True):
            rows[instrument].append(row)

    plan = verify.plan_of(folder, verify.facts_of(folder))
    verify.keep_rows_again(plan, folder, run_folder.read_journal(folder), kept)
    return {i: np.array(each) for i, each in rows.items()}


def one_by_one(kind, bundle, rows):
    """What a stream says that takes its rows one after the other."""
    name = "native" if kind in ("native", "window") else "onnx"
    out = np.zeros((len(rows), len(bundle.outputs)), np.float32)
    with open_backend(bundle, name) as backend:
        state = backend.state()
        for row, answer in zip(rows, out, strict=True):
            backend.step(state, row, answer)
    return out


def digest(outputs):
    """The core's digest of floats."""
    h = len(outputs)
    for bits in np.asarray(outputs, np.float32).view(np.uint32).tolist():
        h = ((h ^ bits) * 0xFF51AFD7ED558CCD) & 0xFFFFFFFFFFFFFFFF
        h ^= h >> 32
    return h - (h >> 63 << 64)


@pytest.mark.parametrize("kind", ["native", "window", "python", "onnx"])
def test_instruments_that_move_together_are_answered_together_as_if_alone(
    kind, asking, trade, same, tmp_path, monkeypatch
):
    bundle, settings = prepared(kind, tmp_path, monkeypatch)
    folder, outcome = trade(asking, 2, **settings)
    run = outcome.run
    assert run.status == "complete", run.error
    assert np.median(batches(folder)) >= 3  # six move at once
    assert run.counters["services"] < run.counters["inferences"] / 2
    assert len(run.model_service_ns) < len(run.model_wait_ns) == run.counters["signals"] > 300
    if kind == "python":
        assert np.median(Sums.calls[-run.counters["services"] :]) >= 3
    same(folder)
    journal = run_folder.read_journal(folder)
    signals = journal[journal["kind"] == RecordKind.SIGNAL]
    for instrument, rows in rows_of(folder).items():
        mine = signals[signals["instrument"] == instrument]
        assert (np.diff(mine["b"]) > 0).all()  # in the order of its rows
        said = one_by_one(kind, bundle, rows)[WARM_UP:]
        assert 0 <= len(said) - len(mine) <= 1  # the last may have waited at the end
        assert [digest(each) for each in said[: len(mine)]] == mine["a"].tolist()


@pytest.mark.parametrize("hold_ms", [0, 3])
def test_without_company_a_row_waits_as_long_as_it_is_told_to(
    asking, trade, same, tmp_path, hold_ms
):
    seldom = Features(spread(), imbalance(5), trigger=Every("50ms"))
    make_bundle(tmp_path / "asked.bundle", features=seldom, warm_up_rows=5)
    alone = {**BATCHES, "data.synth.symbols": ["AAA"], "latency.server.hold": f"{hold_ms}ms"}
    folder, outcome = trade(asking, 3, **alone)
    assert outcome.run.status == "complete", outcome.run.error
    same(folder)
    assert (batches(folder) == 1).all()
    waited, held = outcome.run.model_wait_ns, hold_ms * 1_000_000
    assert len(waited) > 30
    # Sooner only where a busy machine comes to a row so late that the next one is there.
    assert (waited >= held).mean() > 0.8
    assert np.median(waited) < held + 20_000_000


def test_a_bundle_takes_over_while_rows_wait(hft, running, asking, same, tmp_path):
    make_bundle(tmp_path / "asked.bundle", features=TOGETHER)
    better = make_bundle(tmp_path / "better.bundle", 2, features=TOGETHER)
    options = [f"{key}={msgspec.json.encode(value).decode()}" for key, value in BATCHES.items()]
    process = hft(
        *("live", "--venue", "sim", asking, "--duration", "30s", "--out", tmp_path),
        *(word for option in options for word in ("--set", option)),
        *("--set", "latency.server.hold=2ms"),
    )
    folder = running(tmp_path)
    assert swap(folder, better.path).state == "done"
    last, journal = len(SYMBOLS) - 1, folder / "journal.bin"
    while 1 not in versions_of(np.fromfile(journal, JOURNAL), last):  # its answer takes 2 ms more
        assert process.process.poll() is None
        time.sleep(0.05)
    process.process.send_signal(2)
    code, _, err = process.wait()
    assert code == 130, err
    assert batches(folder).max() >= 3
    journal = run_folder.read_journal(folder)
    for instrument in range(len(SYMBOLS)):
        versions = versions_of(journal, instrument).tolist()
        assert versions == sorted(versions)
    assert versions[-1] == 1
    same(folder)


def versions_of(journal, instrument):
    said = (journal["kind"] == RecordKind.SIGNAL) & (journal["instrument"] == instrument)
    return journal["lots"][said] >> 32


def test_a_library_whose_batches_are_not_quite_its_steps_verifies(
    asking, trade, same, tmp_path, monkeypatch
):
    """As TensorFlow's windows: the last digits depend on how many are computed together."""

    class Rounds(Sums):
        def _batch(self, states, rows, out):
            super()._batch(states, rows, out)
            out *= np.float32(1 + 1e-6 * len(states))

    _, settings = prepared("python", tmp_path, monkeypatch)
    monkeypatch.setattr("hft.inference.backends.onnx.OnnxBackend", Rounds)
    folder, outcome = trade(asking, 2, **settings)
    assert outcome.run.status == "complete", outcome.run.error
    assert np.median(batches(folder)) >= 3
    same(folder)


def test_what_a_library_raises_in_a_batch_ends_the_session_as_in_a_step(
    asking, trade, same, tmp_path, monkeypatch
):
    _, settings = prepared("python", tmp_path, monkeypatch)
    monkeypatch.setattr(Sums, "fails_from", 300)
    folder, outcome = trade(asking, 20, **settings)
    assert outcome.run.status == "failed"
    assert "ModelError: model 'model' of S" in outcome.run.error
    assert "more in a batch: RuntimeError: the library gave up" in outcome.run.error
    journal = run_folder.read_journal(folder)
    monkeypatch.setattr(Sums, "calls", [])
    same(folder)
    assert journal["kind"][-1] == RecordKind.END


def test_a_library_that_takes_from_its_list_of_streams_is_told_so(
    asking, trade, tmp_path, monkeypatch
):
    class Taking(Sums):
        def _batch(self, states, rows, out):
            super()._batch(states, rows, out)
            if len(states) > 1:
                states.pop()

    _, settings = prepared("python", tmp_path, monkeypatch)
    monkeypatch.setattr("hft.inference.backends.onnx.OnnxBackend", Taking)
    _, outcome = trade(asking, 20, **settings)
    assert outcome.run.status == "failed"
    assert "more in a batch: IndexError" in outcome.run.error


@pytest.mark.parity
def test_reuse_swaps_gaps_and_batches_together_verify(tmp_path, strategies, same):
    """A row that waits is under way: its stream is given nothing again."""
    linear_softmax(tmp_path / "linear.bundle", understated=50.0)
    new = linear_softmax(tmp_path / "new.bundle", seed=2, understated=20.0)
    shutil.copy(strategies / "reuser.py", tmp_path / "reuser.py")
    settings = {
        "models.model.reuse.epsilon": 0.3,
        "models.model.reuse.shadow": 0.1,
        "data.synth.symbols": SYMBOLS,
        "data.synth.messages_per_s": 5_000.0,
        "latency.server.max_batch": 4,
        "latency.server.hold": "300us",
    }
    plan = prepare(tmp_path / "reuser.py", "synth", recipe={}, settings=settings)
    folder = run_folder.new_folder("live", "reuser", tmp_path)
    with asked_after(1.5, folder, new.path):
        outcome = session.run_sim(plan, folder, 5_000_000_000, nap_ns=50_000)
    run = outcome.run
    assert run.status == "complete", run.error
    run_folder.write_outcome(folder, plan, outcome)
    assert outcome.strategy.heard[True] > 1_000
    assert outcome.strategy.heard[False] > 1_000
    assert run.reuse["under_way"].sum() > 0
    assert run.counters["services"] < run.counters["inferences"]
    same(folder)
