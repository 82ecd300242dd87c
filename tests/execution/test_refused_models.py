"""Settings of latency and execution that cannot be meant are refused: key, value, what is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from hft import Strategy
from hft.cli.main import cli
from hft.errors import ConfigError, HftError
from hft.execution.profiles import COLUMNS, save_profile
from hft.execution.synthetic_profiles import synthetic_profile
from hft.plan import prepare
from hft.recipe_checks import to_recipe
from hft.recipe_files import load_recipe

NAN, INF = float("nan"), float("inf")
REFUSED: dict[str, tuple[Any, ...]] = {
    "venue.queue_n": (0.0, -1.0, NAN, INF),
    "venue.queue": ("power4",),
    "venue.refill_half_life": ("-1s", -5, NAN),
    "venue.refill_probability": (1.5, -0.1, NAN),
    "venue.fade": (1.0, -0.1, NAN),
    "venue.impact.weights": ([-0.1], [NAN]),
    "venue.impact.permanent": (-1.0, NAN),
    "venue.participation_cap": (-1.0, 1.1, NAN),
    "venue.participation_flag": (-1.0, NAN),
    "venue.slippage.coefficient": (-1.0, NAN),
    "latency.entry": (-1, "-1ms", NAN, "2h"),
    "latency.response": (-1, NAN),
    "latency.entry_cancel": (-1, NAN),
    "latency.entry_replace": (-1, NAN),
    "latency.compute": (-1, NAN),
    "latency.risk": (-1, NAN),
    "latency.inference": (-1, NAN),
    "latency.scale": (-1.0, NAN, INF),
    "latency.block": (-1,),
    "latency.ordering": ("lifo",),
    "latency.server.mode": ("lifo",),
    "latency.server.bound": (0,),
    "latency.server.max_batch": (0,),
    "latency.server.deadline": (-1,),
    "latency.server.hold": (-1,),
    "latency.server.per_item": (-1,),
}
CASES = [(key, value) for key, values in REFUSED.items() for value in values]


class Idle(Strategy):
    pass


def tables(key: str, value: Any) -> dict[str, Any]:
    for name in reversed(key.split(".")):
        value = {name: value}
    return dict(value)


@pytest.mark.parametrize(("key", "value"), CASES, ids=[f"{k}={v}" for k, v in CASES])
def test_what_cannot_be_meant_is_refused_from_python_and_from_a_file(
    key: str, value: Any, tmp_path: Path
) -> None:
    table, _, name = key.rpartition(".")
    path = tmp_path / "run.toml"
    path.write_text(f"[{table}]\n{name} = {value}\n")
    if isinstance(value, str):
        path.write_text(f'[{table}]\n{name} = "{value}"\n')
    for told in (
        lambda: prepare(Idle, "synth", recipe=tables(key, value)),
        lambda: to_recipe(load_recipe(path)),
    ):
        with pytest.raises(ConfigError) as refused:
            told()
        assert key in str(refused.value)
        first = value[0] if isinstance(value, list) else value
        assert str(first) in str(refused.value)


def profile_file(tmp_path: Path, column: str, change: Any) -> Path:
    """A shipped profile as a file, one of its columns spoilt."""
    path = tmp_path / "spoilt.parquet"
    save_profile(synthetic_profile("colocated"), path)
    table = pq.read_table(path)
    values = change(np.array(table[column].to_pylist(), object))
    at = list(COLUMNS).index(column)
    pq.write_table(table.set_column(at, column, pa.array(values)), path)
    return path


def negative(values: np.ndarray) -> list[Any]:
    row = next(k for k, v in enumerate(values) if v is not None)
    values[row] = -7
    return values.tolist()


def backwards(values: np.ndarray) -> list[Any]:
    return values.tolist()[::-1]


def not_a_number(values: np.ndarray) -> list[Any]:
    row = next(k for k, v in enumerate(values) if v is not None)
    out = [None if v is None else float(v) for v in values]
    out[row] = NAN
    return out


@pytest.mark.parametrize(
    ("column", "change", "words"),
    [
        ("service_ns", negative, "service_ns is -7"),
        ("entry_ns", negative, "entry_ns is -7"),
        ("service_ns", not_a_number, "service_ns is NaN"),
        ("ts", backwards, "ts goes back in row 1"),
    ],
)
def test_a_spoilt_profile_is_neither_shown_nor_run_on(
    column: str, change: Any, words: str, tmp_path: Path
) -> None:
    path = profile_file(tmp_path, column, change)
    shown = CliRunner().invoke(cli, ["latency", "show", str(path)])
    assert shown.exit_code != 0
    assert words in str(shown.exception)
    recipe = {"latency": {"profile": str(path), "inference": "profile", "entry": "profile"}}
    with pytest.raises(HftError, match=words):
        prepare(Idle, "synth", recipe=recipe)
