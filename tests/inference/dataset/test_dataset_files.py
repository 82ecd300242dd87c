"""What `hft dataset` writes, and how it is read again."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest

from hft.data.store import Store
from hft.data.synth import SynthConfig, synthesize
from hft.errors import ConfigError, DataError
from hft.features import compute_features
from hft.inference.dataset.command import make_datasets
from hft.inference.dataset.facts import METADATA_KEY
from hft.inference.dataset.in_memory import collect
from hft.inference.dataset.reading import open_dataset
from hft.inference.dataset.rows import Options
from hft.inference.dataset.splitting import PARTS, Cuts
from hft.inference.training.task import TrainConfig, prepare
from hft.plan import prepare as plan_of

STRATEGY = """
from hft import Strategy
from hft.features import Features, OnTouch, depth_lots, imbalance, ofi, trade_flow

class Look(Strategy):
    features = Features(imbalance(1), ofi(5, "100ms").log(), trade_flow("1s"), depth_lots(1, 3),
                        trigger=OnTouch(sizes=True))
"""
SECOND = 1_000_000_000
DEFAULTS = {"labels": "100ms,500ms", "latency": "3ms"}
OPTIONS = Options(Cuts(), period_ns=5 * SECOND, memory_ns=20 * SECOND, window=50)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A strategy, and a store of three days of 12 s each."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "look.py").write_text(STRATEGY)
    for day in ("2024-01-01", "2024-01-02", "2024-01-03"):
        synth = SynthConfig(seed=int(day[-1]), start=f"{day}T10:00", duration_s=12.0)
        rows, (spec,) = synthesize(synth)
        Store(folder / "store").write(rows[spec.name], spec)
    return folder


def plan(home: Path, **recipe):
    tables = {"data": {"path": str(home / "store")}}
    return plan_of(home / "look.py", recipe=tables | recipe)


def written(home: Path, folder: Path, options: Options = OPTIONS, recipe=None, **given):
    make_datasets(plan(home, **(recipe or {})), folder, options=options, **(DEFAULTS | given))
    return open_dataset(folder)


@pytest.fixture(scope="module")
def dataset(home, tmp_path_factory):
    return written(home, tmp_path_factory.mktemp("set") / "out", replace(OPTIONS, trips=True))


def whole(dataset, part):
    return pl.concat(list(dataset.frames(part)))


def test_features_go_to_parquet_and_back_bit_for_bit(home, dataset):
    ts, x = compute_features(Store(home / "store").chunks("BTCUSDT.SIM"), dataset.features())
    for part in PARTS:
        frame = whole(dataset, part)
        at = np.searchsorted(ts, frame["ts"].to_numpy()[0]) + np.arange(frame.height)
        assert np.array_equal(ts[at], frame["ts"].to_numpy())
        assert x[at].tobytes() == frame.select(dataset.names).to_numpy().tobytes()


def test_labels_are_what_the_moves_say(dataset):
    train = whole(dataset, "train")
    for horizon in dataset.fold.horizons:
        name = f"{horizon.horizon_ns // 1_000_000}ms"
        move, label = train[f"move_{name}"], train[f"label_{name}"]
        assert (move.is_null() == label.is_null()).all()
        known = train.filter(pl.col(f"label_{name}").is_not_null())
        up = known[f"move_{name}"] > horizon.threshold_ticks
        assert ((known[f"label_{name}"] == 2) == up).all()
        spread_out = known[f"long_{name}"] + known[f"short_{name}"]
        assert (spread_out < 0).all()  # a round trip both ways pays both spreads


def test_counts_are_those_of_the_files(dataset):
    for part, facts in dataset.fold.parts.items():
        frame = whole(dataset, part)
        assert facts.rows == frame.height
        assert facts.unlabelled == frame["move_500ms"].null_count()
        assert facts.windows_refused == frame.filter(pl.col("number") < 49).height
        for weather, storm in (("calm", False), ("storm", True)):
            of = frame.filter(pl.col("storm") == storm)["label_100ms"]
            counts = facts.classes["label_100ms"]
            assert counts[f"{weather}.up"] == (of == 2).sum()
    assert dataset.facts.stretches == {"silence": 2}
    assert dataset.fresh().tolist() == [True, False, False]
    text = (dataset.folder / "dataset.json").read_bytes()
    assert json.loads(text)["data_hash"] == dataset.facts.data_hash


def test_a_file_says_what_it_is(dataset):
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(dataset.path("train"))
    facts = msgspec.json.decode(metadata.metadata[METADATA_KEY])
    assert facts["part"] == "train"
    assert facts["horizons"][0]["threshold_ticks"] == dataset.fold.horizons[0].threshold_ticks
    assert facts["rows"] == metadata.num_rows


def test_parts_do_not_overlap_and_no_label_reaches_into_the_next(dataset):
    label_ns = 3_000_000 + 500_000_000
    ts = {part: whole(dataset, part)["ts"].to_numpy() for part in PARTS}
    for before, after in (("train", "calibrate"), ("calibrate", "test")):
        border = dataset.fold.parts[after].border_ts
        assert ts[before].max() + label_ns <= border
        assert border + label_ns <= ts[after].min()


def test_days_are_parts_and_the_first_row_of_a_day_has_a_history(home, tmp_path):
    options = replace(OPTIONS, by_day=True, cuts=Cuts((0.34, 0.33)))
    found = written(home, tmp_path / "days", options)
    days = {
        part: set(whole(found, part)["ts"].cast(pl.Datetime("ns")).dt.date().to_list())
        for part in PARTS
    }
    assert [len(days[part]) for part in PARTS] == [1, 1, 1]
    assert len(set().union(*days.values())) == 3


def test_days_apart_begin_with_a_fresh_book(home, tmp_path):
    apart = written(home, tmp_path / "apart", recipe={"engine": {"overnight": "flatten"}})
    assert apart.facts.stretches == {"day": 2}
    assert apart.fresh().tolist() == [True, True, True]
    frame = pl.concat([whole(apart, part) for part in PARTS])
    days = []
    for day in ("2024-01-02", "2024-01-03"):
        days.append(Store(home / "store").read("BTCUSDT.SIM", day, f"{day}T23:59"))
        ts, x = compute_features(days[-1], apart.features())
        mine = frame.filter(pl.col("ts").is_in(ts.tolist()))
        mine_ts = mine["ts"].to_numpy()
        nth = np.arange(mine.height) - np.searchsorted(mine_ts, mine_ts)  # of that instant
        at = np.searchsorted(ts, mine_ts) + nth
        assert mine.height > 100
        assert x[at].tobytes() == mine.select(apart.names).to_numpy().tobytes()
    kept = collect([[day] for day in days], apart.features(), latency_ns=0, horizons_ns=(1,))
    each = [compute_features(day, apart.features()) for day in days]
    assert kept.ts.tobytes() == np.concatenate([ts for ts, _ in each]).tobytes()
    assert kept.x.tobytes() == np.concatenate([x for _, x in each]).tobytes()


def test_folds_walk_forward(home, tmp_path):
    written(home, tmp_path / "folds", replace(OPTIONS, cuts=Cuts((0.5, 0.1), folds=2)))
    first, second = (open_dataset(tmp_path / "folds", fold) for fold in (1, 2))
    assert first.path("train") != second.path("train")
    a, b = (whole(fold, "test")["ts"].to_numpy() for fold in (first, second))
    assert a.max() < b.min()
    longer = whole(second, "train")["ts"]
    assert longer.is_in(whole(first, "train")["ts"].implode()).sum() == whole(first, "train").height
    with pytest.raises(ConfigError, match="has 2 folds, there is no fold 3"):
        open_dataset(tmp_path / "folds", 3)


def test_scales_beside_the_rows_are_of_the_past(dataset):
    start, mean, scale = dataset.scales()
    frame = pl.concat([whole(dataset, part) for part in PARTS])
    period, ts = frame["period"].to_numpy(), frame["ts"].to_numpy()
    has = period >= 0
    assert has.mean() > 0.5
    assert (ts[has] >= start[period[has]]).all()
    later = period[has] + 1 < len(start)
    assert (ts[has][later] < start[period[has][later] + 1]).all()
    z, fixed = dataset.scaled(frame, trailing=True), dataset.scaled(frame)
    assert np.array_equal(z[~has], fixed[~has])  # as a run does before there is one
    x = frame.select(dataset.names).to_numpy()[has]
    clip = dataset.fold.scaler.clip
    wanted = np.clip((x - mean[period[has]]) / scale[period[has]], -clip, clip)
    assert z[has] == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("rows", [64, 1_000, 1 << 16])
def test_windows_are_whole_and_cross_no_break(dataset, rows):
    frame = whole(dataset, "train")
    x = dataset.scaled(frame).astype(np.float32)
    wanted = np.flatnonzero(frame["number"].to_numpy() >= 49)
    found = list(dataset.windows("train", 50, rows=rows))
    last = pl.concat([end for _, end in found])
    assert np.array_equal(last["ts"].to_numpy(), frame["ts"].to_numpy()[wanted])
    windows = np.concatenate([window for window, _ in found])
    for n in range(0, len(wanted), 501):
        assert np.array_equal(windows[n], x[wanted[n] - 49 : wanted[n] + 1])


def test_padding_is_masked(dataset):
    frame = whole(dataset, "test")
    mask = dataset.mask(frame)
    assert mask[:, :3].all()
    assert np.array_equal(mask[:, 3], frame["depth_bid_3"].to_numpy() > 0)


def test_training_reads_the_same_rows(dataset):
    rows, parts = dataset.rows()
    config = TrainConfig(horizons_ns=tuple(rows.moves), latency_ns=dataset.typical_latency_ns())
    task = prepare(rows, config, lambda line: None, parts)
    (horizon,) = [h for h in dataset.fold.horizons if h.horizon_ns == task.horizon_ns]
    assert task.move_ticks == pytest.approx(horizon.move_ticks)
    assert task.scaler.mean == pytest.approx(dataset.fold.scaler.mean)
    assert task.scaler.scale == pytest.approx(dataset.fold.scaler.scale)
    train = whole(dataset, "train")
    name = f"label_{task.horizon_ns // 1_000_000}ms"
    known = train[name].is_not_null().to_numpy()
    assert np.array_equal(task.label[parts.train][known], train[name].drop_nulls().to_numpy())
    assert (task.weight[parts.train][~known] == 0).all()


def test_a_latency_profile_moves_each_label_by_its_own_draw(home, tmp_path):
    drawn = written(home, tmp_path / "drawn", latency="same-region")
    median = written(home, tmp_path / "median", latency="same-region", median=True)
    assert drawn.facts.latency_ns is None
    ns = whole(drawn, "train")["latency_ns"]
    assert ns.n_unique() > 100
    assert median.facts.latency_ns == pytest.approx(ns.median(), rel=0.25)
    again = written(home, tmp_path / "again", latency="same-region")
    assert whole(again, "train").equals(whole(drawn, "train"))


def test_the_same_data_and_options_give_the_same_bytes(home, tmp_path):
    for name in ("a", "b"):
        written(home, tmp_path / name)
    for file in ("dataset.json", "train.parquet", "test.parquet", "scales.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_chunks_of_the_data_do_not_matter(home, tmp_path):
    a = written(home, tmp_path / "a")
    chunked = {"data": {"path": str(home / "store"), "chunk_rows": 997}}
    b = written(home, tmp_path / "b", recipe=chunked)
    assert b.facts.rows == a.facts.rows
    for part in PARTS:
        assert whole(b, part).equals(whole(a, part))


def test_memory_does_not_grow_with_the_data(home, tmp_path):
    """Five times the data, all of many row groups, none kept by its feed."""
    program = """
import resource, sys
from pathlib import Path
import pyarrow as pa
from hft import feeds
from hft.plan import prepare
from hft.inference.dataset import parts, rows
from hft.inference.dataset.command import make_datasets
sys.path.insert(0, sys.argv[4])
from test_dataset_files import DEFAULTS, OPTIONS
feeds.MOST_KEPT = 0  # a synthetic market is kept up to 256 MiB
rows.ROW_GROUP = parts.ROW_GROUP = 2048
data = {"path": "synth", "chunk_rows": 20000, "synth": {"duration_s": float(sys.argv[2])}}
plan = prepare(sys.argv[1], recipe={"data": data})
make_datasets(plan, Path(sys.argv[3]), options=OPTIONS, **DEFAULTS)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
print(pa.default_memory_pool().max_memory() // 1024)
"""
    peaks_mb, arrow_kb = [], []
    for seconds in ("60", "300"):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                program,
                str(home / "look.py"),
                seconds,
                str(tmp_path / seconds),
                str(Path(__file__).parent),
            ],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        peak_mb, peak_kb = map(int, done.stdout.split()[-2:])
        peaks_mb.append(peak_mb)
        arrow_kb.append(peak_kb)
    assert peaks_mb[1] < peaks_mb[0] + 40, f"{peaks_mb} MB"
    assert arrow_kb[1] < arrow_kb[0] + 2000, f"{arrow_kb} KB of Arrow's"


# ---- refusals ----


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"labels": "soon"}, "'soon' is not a duration"),
        ({"labels": "1s,1s"}, "a horizon is named twice"),
        ({"labels": "0ms"}, "a horizon must be longer than 0"),
        ({"latency": "nowhere"}, "latency profile 'nowhere': no such file"),
        ({"latency": "3 parsecs"}, "'3 parsecs' is not a duration"),
        ({"model": "alpha"}, "no model 'alpha' in Look; it has features"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(home, tmp_path, given, words):
    with pytest.raises(ConfigError, match=words):
        written(home, tmp_path / "out", **given)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_exists_is_kept(home, tmp_path):
    written(home, tmp_path / "out")
    before = (tmp_path / "out" / "dataset.json").read_bytes()
    with pytest.raises(ConfigError, match="exists: give another folder, or --overwrite"):
        written(home, tmp_path / "out")
    with pytest.raises(ConfigError, match="no training row is down"):
        written(home, tmp_path / "out", replace(OPTIONS, threshold_ticks=1e6), overwrite=True)
    assert (tmp_path / "out" / "dataset.json").read_bytes() == before
    written(home, tmp_path / "out", overwrite=True, labels="200ms")
    assert open_dataset(tmp_path / "out").facts.horizons_ns == (200_000_000,)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ConfigError, match="is no dataset: it is not overwritten"):
        written(home, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out"]


def test_several_instruments_have_a_folder_each(home, tmp_path):
    synth = {"duration_s": 12, "symbols": ["AAA", "BBB"]}
    recipe = {"data": {"path": "synth", "synth": synth}}
    plan = plan_of(home / "look.py", recipe=recipe)
    made = make_datasets(plan, tmp_path / "out", options=OPTIONS, **DEFAULTS)
    assert {path.name: facts.instrument for path, facts in made.items()} == {
        "AAA.SIM": "AAA.SIM",
        "BBB.SIM": "BBB.SIM",
    }
    first = (tmp_path / "out" / "AAA.SIM" / "dataset.json").stat().st_mtime_ns
    (tmp_path / "out" / "BBB.SIM" / "dataset.json").unlink()
    with pytest.raises(ConfigError, match=r"BBB\.SIM is no dataset"):
        make_datasets(plan, tmp_path / "out", options=OPTIONS, overwrite=True, **DEFAULTS)
    assert (tmp_path / "out" / "AAA.SIM" / "dataset.json").stat().st_mtime_ns == first


def test_a_feature_may_not_be_called_like_a_column(home, tmp_path):
    text = STRATEGY.replace("imbalance(1)", 'imbalance(1).named("stretch")')
    (tmp_path / "look.py").write_text(text)
    recipe = {"data": {"path": str(home / "store")}}
    with pytest.raises(ConfigError, match="feature 'stretch' has the name of a column"):
        make_datasets(
            plan_of(tmp_path / "look.py", recipe=recipe),
            tmp_path / "out",
            options=OPTIONS,
            **DEFAULTS,
        )


def test_features_of_what_we_took_are_said_to_be_of_the_tape(home, tmp_path):
    text = STRATEGY.replace("trigger=OnTouch(sizes=True)", "trigger=OnTouch(), reactive=True")
    (tmp_path / "look.py").write_text(text)
    recipe = {"data": {"path": str(home / "store")}}
    (facts,) = make_datasets(
        plan_of(tmp_path / "look.py", recipe=recipe), tmp_path / "out", options=OPTIONS, **DEFAULTS
    ).values()
    assert "these are of the tape" in facts.notes[-1]


def test_too_little_data_is_said(home, tmp_path):
    data = {"path": str(home / "store"), "end": "2024-01-01T10:00:02"}
    with pytest.raises(DataError, match=r"no features row|too few to split"):
        written(home, tmp_path / "out", recipe={"data": data})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["", "{}", '{"version": 7}', "not json"])
def test_what_is_no_dataset_is_refused(tmp_path, damage):
    if damage:
        (tmp_path / "dataset.json").write_text(damage)
    with pytest.raises(DataError, match=r"dataset\.json"):
        open_dataset(tmp_path)


def test_parts_that_are_missing_cut_or_swapped_are_named(home, tmp_path):
    found = written(home, tmp_path / "out")
    train, test = found.path("train"), found.path("test")
    whole_train = train.read_bytes()
    train.write_bytes(whole_train[:-100])
    with pytest.raises(DataError, match=r"train\.parquet cannot be read"):
        found.rows()
    train.write_bytes(test.read_bytes())
    with pytest.raises(DataError, match=r"train\.parquet holds .* it is of another writing"):
        next(found.frames("train"))
    train.unlink()
    with pytest.raises(DataError, match=r"train\.parquet cannot be read"):
        found.path("train")
    (found.folder / "scales.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match=r"scales\.parquet cannot be read"):
        found.scales()
    with pytest.raises(ConfigError, match="no part 'validate'; there are train, calibrate, test"):
        found.path("validate")


def test_the_command_by_hand(home, tmp_path):
    def hft(*args):
        command = [sys.executable, "-m", "hft", "dataset", str(home / "look.py"), *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)

    common = ("--store", str(home / "store"), "--labels", "100ms")
    done = hft(*common, "--latency", "1ms", "-o", "out", "--from", "2024-01-02")
    assert done.returncode == 0, done.stderr
    assert "BTCUSDT.SIM: " in done.stdout
    assert "labels 1ms (1ms) after the row" in done.stdout
    assert open_dataset(tmp_path / "out").facts.options["cuts"]["embargo_ns"] == 101_000_000
    for wrong, code, words in (
        (("--split", "half"), 2, "--split half: want two shares"),
        (("--period", "2d"), 2, "scales of every 2d look back 1d: want a period above 0, and a"),
        (("--period", "1s", "--overwrite"), 2, "look back 86400 periods, want at most 1000"),
        (("--flat", "nan"), 2, "nan is no finite number"),
        (("--drift", "inf"), 2, "inf is no finite number"),
        (("--symbol", "ETH"), 2, "no data for symbol 'ETH'"),
    ):
        done = hft(*common, "-o", "out", *wrong)
        assert done.returncode == code, done.stderr
        assert words in done.stderr


def test_the_bundle_s_features_are_the_default(request, tmp_path):
    folder = request.config.rootpath / "strategies"
    recipe = {"data": {"path": "synth", "synth": {"duration_s": 40}}}
    make_datasets(
        plan_of(folder / "lstm_mm.py", recipe=recipe),
        tmp_path / "out",
        options=OPTIONS,
        **(DEFAULTS | {"latency": "recipe"}),
    )
    found = open_dataset(tmp_path / "out")
    assert found.facts.model == "model"
    assert len(found.names) == 16
    assert found.facts.latency_ns == 1_070_000  # inference 50 us, compute 20 us, entry 1 ms
