"""A data set of eight days of Shenzhen: auctions, noon and nights are not crossed."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

from hft.cli.main import cli
from hft.inference.dataset.reading import open_dataset
from hft.inference.dataset.splitting import PARTS

SECOND = 1_000_000_000
HOUR = 3_600 * SECOND
DAY = 24 * HOUR
SESSIONS = ((1.5 * HOUR, 3.5 * HOUR), (5 * HOUR, 6.95 * HOUR))
"""UTC: 9:30 to 11:30 and 13:00 to 14:57 in Beijing."""
STRATEGY = """
from hft import Strategy
from hft.features import Features, OnPacket, depth_lots, imbalance, mid_return

class Look(Strategy):
    features = Features(imbalance(1), depth_lots(1, 10), mid_return("1min"), trigger=OnPacket())
"""


def hft(*args: object) -> str:
    done = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def dataset(data_dir, tmp_path_factory):
    file = data_dir / "cn_l2" / "MDStockRecord_000001.SZ_202009_01-10.parquet"
    if not file.is_file():
        pytest.skip(f"no {file.name}")
    home = tmp_path_factory.mktemp("szse")
    (home / "look.py").write_text(STRATEGY)
    hft("data", "import", "shenzhen", file, "--store", home / "store")
    options = ("--labels", "1min,5min", "--latency", "100ms", "--by", "day", "--split", "0.5,0.25")
    hft(
        *("dataset", home / "look.py", "--store", home / "store", "--window", "20"),
        *(*options, "-o", home / "set"),
    )
    return open_dataset(home / "set")


def test_each_day_is_broken_by_noon_and_the_closing_auction(dataset):
    assert dataset.facts.stretches == {"auction": 8, "halt": 8}
    frame = pl.concat([f for part in PARTS for f in dataset.frames(part)])
    assert frame["stretch"].n_unique() == 16
    time = frame["ts"].to_numpy() % DAY
    inside = np.zeros(len(time), bool)
    for start, end in SESSIONS:
        inside |= (time >= start) & (time < end + 10 * SECOND)  # heard a little late
    assert inside.all()


def test_labels_end_in_the_session_they_began_in(dataset):
    frame = pl.concat([f for part in PARTS for f in dataset.frames(part)])
    for name, horizon in (("move_1min", 60 * SECOND), ("move_5min", 300 * SECOND)):
        known = frame.filter(pl.col(name).is_not_null())["ts"].to_numpy()
        end = (known + 100_000_000 + horizon) % DAY
        morning = known % DAY < 4 * HOUR
        assert (end[morning] < SESSIONS[0][1]).all()
        assert (end[~morning] < SESSIONS[1][1]).all()
        assert len(known) > 0.9 * frame.height


def test_windows_lie_in_one_session(dataset):
    refused = dataset.fold.parts["test"].windows_refused
    assert refused == 4 * 19  # two days, two stretches each
    rows = sum(len(windows) for windows, _ in dataset.windows("test", 20))
    assert rows == dataset.fold.parts["test"].rows - refused


def test_days_are_whole(dataset):
    days = [
        {*np.unique(pl.concat(list(dataset.frames(part)))["ts"].to_numpy() // DAY).tolist()}
        for part in PARTS
    ]
    assert [len(each) for each in days] == [4, 2, 2]
    assert len(set.union(*days)) == 8
