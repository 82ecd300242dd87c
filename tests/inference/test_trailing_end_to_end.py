"""From a market whose price moves away to a model that runs as it was trained, by the commands."""

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from hft import Model, Strategy, engine
from hft.cli.main import cli
from hft.errors import ConfigError
from hft.inference.build.evidence import Asked, evidence_of
from hft.inference.build.subject import known_of, of_bundle
from hft.inference.bundle import load_bundle
from hft.inference.dataset.reading import open_dataset
from hft.plan import prepare

pytest.importorskip("keras", reason="training needs the extra [train]")
SCALES = ("--period", "40s", "--memory", "80s", "--drift", "2")
STRATEGY = """
from hft import Strategy
from hft.features import Features, OnTouch, imbalance, micro_price_minus_mid, mid

class Level(Strategy):
    features = Features(mid(), imbalance(5), micro_price_minus_mid(), trigger=OnTouch(sizes=True))
"""


def hft(*arguments):
    done = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A store, and a data set of a column whose mean moves."""
    home = tmp_path_factory.mktemp("home")
    (home / "level.py").write_text(STRATEGY)
    market = ("duration_s=300", "seed=7", "messages_per_s=500")
    hft("data", "synth", "--store", home / "store", *(w for m in market for w in ("--set", m)))
    hft(
        *("dataset", home / "level.py", "--store", home / "store", "--labels", "250ms"),
        *("--latency", "1ms", *SCALES, "-o", home / "set"),
    )
    return home


def trained(home, name, model, monkeypatch):
    """A bundle, and the probabilities that its training measured it by: times and (n, 3)."""
    from hft.inference.training import train as module

    seen, measure = {}, module.measure

    def noting(task, p, readout):
        seen["ts"], seen["p"] = task.rows.ts[task.parts.test], p
        return measure(task, p, readout)

    monkeypatch.setattr(module, "measure", noting)
    bundle = home / f"{name}.bundle"
    told = hft(
        *("train", home / "level.py", "--dataset", home / "set", "--trailing", "--model", model),
        *("--epochs", 1, "--lanes", 8, "--learning-rate", 0.01, "-o", bundle),
    )
    assert "scales trail, every 40s of 80s, on a drift of 2 scales" in told.replace("\n", " ")
    return bundle, seen["ts"], seen["p"]


def heard(home, bundle):
    """What a backtest's signals say, by the time of their rows."""

    class Listening(Strategy):
        model = Model(str(bundle))

        def on_start(self):
            self.said = {}

        def on_signal(self, s):
            self.said[s.ts] = s["down"], s["flat"], s["up"]

    settings = {"engine.bracket": False, "latency.compute": 0}
    outcome = engine.run_once(prepare(Listening, str(home / "store"), settings=settings))
    assert outcome.run.status == "complete", outcome.run.error
    return outcome.strategy.said


def test_the_mean_of_a_column_moves_by_more_than_it_varies(home):
    dataset = open_dataset(home / "set")
    _, mean, scale = dataset.scales()
    assert np.ptp(mean[:, 0]) > 3 * np.median(scale[:, 0])
    test = pl.read_parquet(dataset.path("test"))
    assert np.abs(dataset.scaled(test, trailing=True)[:, 0]).mean() < 2


@pytest.mark.parametrize(
    ("model", "after", "largest"), [("dense:8", 0, 0.0), ("lstm:8", 500, 1e-5)]
)
def test_a_backtest_says_what_training_measured(home, model, after, largest, monkeypatch):
    """To the bit where there is no memory: in a run that holds the rows between two parts too."""
    bundle, ts, p = trained(home, model[:4], model, monkeypatch)
    assert load_bundle(bundle).card.trailing == open_dataset(home / "set").trailing
    said = heard(home, bundle)
    times, rows_then = np.unique(ts, return_counts=True)
    apart = np.isin(ts, times[rows_then == 1])  # one signal tells of all rows of an instant
    both = [n for n in np.flatnonzero(apart).tolist() if n >= after and ts[n] in said]
    found = [np.abs(np.array(said[ts[n]]) - p[n]).max() for n in both]
    print(f"{model}: largest difference of a probability {max(found):.3g} on {len(found)} rows")
    assert len(found) > 0.8 * len(ts)
    assert max(found) <= largest


def test_a_build_is_judged_on_the_rows_that_a_run_computes(home, monkeypatch):
    bundle, *_ = trained(home, "built", "dense:4", monkeypatch)
    subject = of_bundle(bundle)
    dataset = open_dataset(home / "set")
    of_set = evidence_of(Asked(dataset=home / "set"), known_of(subject.card), lambda line: None)
    whole = pl.concat([pl.read_parquet(dataset.path(p)) for p in ("train", "calibrate", "test")])
    own = subject.card.scaler
    assert of_set.task.scaler == own
    assert np.array_equal(of_set.task.rows.x, dataset.in_own_terms(whole, own))
    asked = Asked(strategy=str(home / "level.py"), store=str(home / "store"))
    of_store = evidence_of(asked, known_of(subject.card), lambda line: None)
    same = np.isin(of_store.task.rows.ts, whole["ts"].to_numpy())
    assert np.array_equal(of_store.task.rows.x[same], of_set.task.rows.x)


def test_a_data_set_of_other_scales_is_refused(home, tmp_path, monkeypatch):
    bundle, *_ = trained(home, "other", "dense:4", monkeypatch)
    hft(
        *("dataset", home / "level.py", "--store", home / "store", "--labels", "250ms"),
        *("--latency", "1ms", "-o", tmp_path / "set"),
    )
    known = known_of(of_bundle(bundle).card)
    with pytest.raises(ConfigError, match=r"has scales of every 1h of 1d, .* the model's are of"):
        evidence_of(Asked(dataset=tmp_path / "set"), known, lambda line: None)
