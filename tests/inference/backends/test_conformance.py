"""Every installed backend against the same networks: one behaviour, whatever computes."""

from __future__ import annotations

import dataclasses
import threading

import msgspec
import numpy as np
import pytest
from backend_cases import (
    AGAIN,
    CASES,
    FEATURES,
    FEW,
    MOVES,
    NETWORKS,
    ROWS,
    SHRINK,
    WIDTH,
    Case,
    expected,
    market_rows,
    random_rows,
)
from click.testing import CliRunner

from hft.cli.main import cli
from hft.data.store import Store
from hft.errors import ConfigError, ModelError
from hft.features import compute_features
from hft.inference.backends import NAMES, open_backend
from hft.inference.bundle import load_bundle, save_bundle


@pytest.fixture(scope="session")
def opened(bundles, request):
    """Backends by case, each opened once."""
    found = {}

    def of(case: Case):
        if case not in found:
            found[case] = opened_anew(case, bundles, request)
        return found[case]

    yield of
    for backend in found.values():
        backend.close()


def opened_anew(case, bundles, request):
    url = request.getfixturevalue("url") + case.network if case.backend == "serving" else ""
    return open_backend(
        bundles[case.network], case.backend, precision=case.precision, url=url, timeout_s=20.0
    )


@pytest.fixture(params=CASES, ids=str)
def case(request):
    if request.param.missing:
        pytest.skip(f"{request.param.missing} not installed")
    return request.param


@pytest.fixture
def backend(case, opened):
    return opened(case)


layers_do_not_matter = pytest.mark.parametrize("case", FEW, indirect=True, ids=str)


def stepped(backend, rows, state=None):
    state = state or backend.state()
    out = np.zeros((len(rows), len(backend.outputs)), np.float32)
    for row, answer in zip(rows, out, strict=True):
        backend.step(state, row, answer)
    return out


def require_near(case, out, rows):
    want = expected(case, rows)
    found = out[len(out) - len(want) :]
    np.testing.assert_allclose(found[:, :3], want, atol=case.tolerance)
    forecast = SHRINK * (found[:, :3].astype(np.float64) @ np.array(MOVES))
    np.testing.assert_allclose(found[:, 3], forecast, atol=1e-6)
    assert found[:, 4].tobytes() == found[:, :3].max(axis=1).tobytes()


def test_there_is_a_case_of_every_backend_and_network():
    assert {case.backend for case in CASES} == set(NAMES)
    assert {case.network for case in CASES} == set(NETWORKS)


def test_random_rows(case, backend):
    require_near(case, stepped(backend, random_rows()), random_rows())


def test_rows_of_the_synthetic_market(case, backend):
    rows = market_rows()[500 : 500 + ROWS]
    require_near(case, stepped(backend, rows), rows)


@pytest.fixture(scope="session")
def real_rows(data_dir, tmp_path_factory):
    file = data_dir / "cn_l2" / "MDStockRecord_000001.SZ_202009_01-10.parquet"
    if not file.is_file():
        pytest.skip(f"no {file.name}")
    home = tmp_path_factory.mktemp("real")
    done = CliRunner().invoke(cli, ["data", "import", "shenzhen", str(file), "--store", str(home)])
    assert done.exit_code == 0, done.output
    store = Store(home)
    (name,) = store.symbols()
    return compute_features(store.read(name), FEATURES)[1][1000 : 1000 + ROWS]


def test_real_rows(case, backend, real_rows):
    require_near(case, stepped(backend, real_rows), real_rows)


def test_after_a_reset_nothing_is_remembered(backend):
    rows, state = random_rows(), backend.state()
    first = stepped(backend, rows, state)
    backend.reset(state)
    assert stepped(backend, rows, state).tobytes() == first.tobytes()


def test_answers_after_a_row_that_was_skipped_are_as_after_a_step(case, backend):
    rows, state = random_rows(), backend.state()
    skipped = rows.copy()
    skipped[20] = np.nan  # leaves no trace, skipped or not
    whole = stepped(backend, skipped)
    out = np.zeros_like(whole)
    for i, row in enumerate(skipped):
        if i % 3:
            backend.skip(state, row)
        else:
            backend.step(state, row, out[i])
    assert out[::3].tobytes() == whole[::3].tobytes()


@layers_do_not_matter
def test_a_row_that_is_not_finite_leaves_no_trace(backend):
    rows = random_rows()
    whole = np.insert(rows, [0, 7, 30], np.nan, axis=0)
    whole[31, 1:] = 1.0
    whole[31, 0] = np.inf
    out = stepped(backend, whole)
    bad = ~np.isfinite(whole).all(axis=1)
    assert np.isnan(out[bad]).all()
    good = np.delete(whole, np.flatnonzero(bad), axis=0)
    assert out[~bad].tobytes() == stepped(backend, good).tobytes()


@layers_do_not_matter
def test_after_a_gap_a_stream_is_as_new(backend):
    rows, state = random_rows(), backend.state()
    stepped(backend, rows[:20], state)
    stepped(backend, np.full((1, WIDTH), np.nan), state)
    backend.reset(state)
    assert stepped(backend, rows[20:], state).tobytes() == stepped(backend, rows[20:]).tobytes()


def test_arming_changes_nothing(backend):
    rows, state = random_rows(), backend.state()
    out = np.zeros((len(rows), len(backend.outputs)), np.float32)
    for row, answer in zip(rows, out, strict=True):
        backend.step(state, row, answer)
        backend.arm(state)
    assert out.tobytes() == stepped(backend, rows).tobytes()


@pytest.mark.parametrize("n", [1, 5])
def test_a_batch_is_its_rows_one_by_one(case, backend, n):
    rows = np.stack([random_rows(20, seed) for seed in range(n)], axis=1)  # (20, n, k)
    rows[9, n // 2, 2] = np.nan
    states = [backend.state() for _ in range(n)]
    out = np.zeros((20, n, len(backend.outputs)), np.float32)
    for row, answer in zip(rows, out, strict=True):
        backend.batch(states, row, answer)
    for i in range(n):
        alone = stepped(backend, np.ascontiguousarray(rows[:, i]))
        if case.backend == "native":
            assert out[:, i].tobytes() == alone.tobytes()
        else:
            np.testing.assert_allclose(out[:, i], alone, atol=AGAIN * 10)
            np.testing.assert_allclose(out[:, i, :3], alone[:, :3], atol=AGAIN)


def test_a_window_is_seen_from_nothing(case, backend):
    rows, out = random_rows(case.window_rows or 25, 5), np.zeros(5, np.float32)
    backend.window(rows, out)
    assert out.tobytes() == stepped(backend, rows)[-1].tobytes()
    backend.window(np.full_like(rows, np.nan), out)
    assert np.isnan(out).all()


def test_threads_may_each_step_their_own_stream(backend):
    rows = [random_rows(40, seed) for seed in (1, 2)]
    alone = [stepped(backend, each) for each in rows]
    found = [[], []]

    def work(i):
        found[i] = [stepped(backend, rows[i]) for _ in range(3)]

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in (0, 1):
        assert all(out.tobytes() == alone[i].tobytes() for out in found[i])
        assert len(found[i]) == 3


@layers_do_not_matter
def test_arrays_that_do_not_fit_are_refused(case, backend):
    state, row, out = backend.state(), random_rows(1)[0], np.zeros(5, np.float32)
    for wrong, words in (
        (row[:-1], r"row is \(5,\) float64, want \(6,\) float64"),
        (row.astype(np.float32), r"row is \(6,\) float32"),
        (np.zeros(12)[::2], "not contiguous"),
        (row.tolist(), "row is a list"),
    ):
        with pytest.raises(ModelError, match=words):
            backend.step(state, wrong, out)
    for wrong, words in (
        (out[:-1], r"out is \(4,\) float32, want \(5,\) float32"),
        (out.astype(np.float64), r"out is \(5,\) float64"),
    ):
        with pytest.raises(ModelError, match=words):
            backend.step(state, row, wrong)
    with pytest.raises(ModelError, match=r"rows is \(6,\) float64, want \(1, 6\)"):
        backend.batch([state], row, out[None])
    with pytest.raises(ModelError, match="state is there twice"):
        backend.batch([state, state], random_rows(2), np.zeros((2, 5), np.float32))
    rows = random_rows(3)
    want = f"({case.window_rows or 3}, 6)"
    with pytest.raises(ModelError) as caught:
        backend.window(np.ascontiguousarray(rows[:, :5]), out)
    assert f"rows is (3, 5) float64, want {want} float64" in str(caught.value)


@layers_do_not_matter
def test_a_closed_backend_says_so(case, bundles, request):
    backend = opened_anew(case, bundles, request)
    state, row, out = backend.state(), random_rows(1)[0], np.zeros(5, np.float32)
    backend.step(state, row, out)
    backend.close()
    backend.close()
    for use in (
        lambda: backend.step(state, row, out),
        lambda: backend.batch([state], row[None], out[None]),
        lambda: backend.reset(state),
        lambda: backend.arm(state),
        backend.state,
        backend.warm_up,
    ):
        with pytest.raises(ModelError, match=rf"{case.backend} .*closed; open it again"):
            use()


@layers_do_not_matter
def test_a_state_of_another_backend_is_refused(case, backend, opened):
    other = Case("gru" if case.network == "lstm" else "lstm", "native", "fp32")
    with pytest.raises(ModelError, match="the state is of native fp32 FULL, want one of"):
        backend.reset(opened(other).state())


@layers_do_not_matter
def test_warming_up_tells_what_a_row_takes(case, backend):
    warmth = backend.warm_up(60, longest_s=0.2)
    assert 0 < warmth.median_ns <= warmth.p99_ns
    assert backend.require_budget() is warmth  # nothing is declared


@layers_do_not_matter
def test_a_model_over_its_budget_is_refused(case, bundles, request, tmp_path):
    bundle = bundles[case.network]
    for budget_ns, keeps in ((1, False), (10_000_000_000, True)):
        card = msgspec.structs.replace(bundle.card, budget_ns=budget_ns)
        with opened_anew(
            case, {case.network: dataclasses.replace(bundle, card=card)}, request
        ) as backend:
            if keeps:
                backend.warm_up(60, longest_s=0.2)
                backend.require_budget()
                continue
            backend.warm_up(60, longest_s=0.2)
            with pytest.raises(ModelError) as caught:
                backend.require_budget()
    for words in (
        "model.toml: budget_ns is 1 (1ns a row)",
        f"{case.backend} ",
        "p99 ",
        "`hft build`",
    ):
        assert words in str(caught.value)


def test_an_unknown_backend_is_refused(bundles):
    with pytest.raises(ConfigError, match="no backend 'torch'; there are native, litert, onnx"):
        open_backend(bundles["dense"], "torch")


def test_a_bundle_survives_being_saved_with_its_parts(bundles):
    for bundle in bundles.values():
        assert load_bundle(bundle.path).card == bundle.card
        assert save_bundle(bundle.path, bundle.card, bundle.weights).card == bundle.card
