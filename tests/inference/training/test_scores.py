import numpy as np
import pytest

from hft.inference.training import scores
from hft.inference.training.metrics import doubts, doubts_of_calibration


def test_auc_is_the_share_of_ordered_pairs():
    rng = np.random.default_rng(0)
    score = rng.integers(0, 20, 200).astype(float)
    positive = rng.random(200) < 0.3 + score / 60
    up, down = score[positive], score[~positive]
    pairs = (up[:, None] > down).mean() + 0.5 * (up[:, None] == down).mean()
    assert scores.auc(score, positive) == pytest.approx(pairs)
    assert np.isnan(scores.auc(score, np.ones(200, bool)))


def test_temperature_finds_how_much_too_sure_a_forecast_is():
    rng = np.random.default_rng(1)
    logits = rng.standard_normal((40_000, 3))
    truth = scores.tempered(logits, 1.0)
    label = (rng.random((40_000, 1)) > truth.cumsum(axis=1)).sum(axis=1)
    sure = scores.tempered(logits, 0.5)
    assert scores.temperature(sure, label, np.ones(40_000)) == pytest.approx(2.0, rel=0.05)


def test_calibration_error_is_zero_for_the_truth_and_the_bias_for_a_biased_one():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.1, 0.6, 100_000)
    happened = rng.random(100_000) < p
    assert scores.calibration_error(p, happened) < 0.01
    assert scores.calibration_error(p + 0.2, happened) == pytest.approx(0.2, abs=0.01)


def test_slope_undoes_a_factor():
    rng = np.random.default_rng(3)
    forecast = rng.standard_normal(1_000)
    weight = rng.uniform(0.5, 2.0, 1_000)
    assert scores.slope(2 * forecast, forecast, weight) == pytest.approx(0.5)
    assert scores.correlation(forecast, -forecast) == pytest.approx(-1.0)
    assert scores.correlation(forecast, np.ones(1_000)) == 0.0


def test_a_model_that_is_no_better_than_what_it_has_to_beat_is_told():
    good = {
        "log_loss": 1.0,
        "log_loss_of_shares": 1.05,
        "alpha_correlation": 0.2,
        "linear_correlation": 0.15,
    }
    assert doubts(good) == []
    (line,) = doubts({**good, "log_loss": 1.12})
    assert line == "no better than the shares of the classes alone: log_loss 1.12 against 1.05"
    assert "a linear model" in doubts({**good, "alpha_correlation": -0.05})[0]
    assert doubts({"log_loss": 1.0, "log_loss_of_shares": 1.05, "linear_correlation": 0.1}) == []
    assert "alpha_ticks is 0 on every row" in doubts({**good, "alpha_rms_ticks": 0.0})[0]


def test_calibration_that_came_to_its_end_is_told():
    assert doubts_of_calibration(1.2, 0.8) == []
    p = np.tile([0.999, 0.0005, 0.0005], (300, 1))  # sure, and right one time in three
    t = scores.temperature(p, np.arange(300) % 3, np.ones(300))
    (line,) = doubts_of_calibration(t, 0.8)
    assert "stopped at the end of 0.25 to 4" in line
    assert "shrink stopped at 1.5" in doubts_of_calibration(1.2, 1.5)[0]
