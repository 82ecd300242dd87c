"""A profile's file: what is written is read back, and what is wrong is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hft.errors import ConfigError, DataError
from hft.execution.profiles import (
    COLUMNS,
    METADATA_KEY,
    ClockOffset,
    LatencyProfile,
    ProfileFacts,
    load_profile,
    make_profile,
    save_profile,
)
from hft.execution.synthetic_profiles import SHIPPED, synthetic_profile

FACTS = ProfileFacts(
    origin="measured",
    source="a test",
    venue="SIM",
    clock_offset=ClockOffset(estimate_ns=-5, half_width_ns=3),
    notes=("made up",),
)


def small(**changes: Any) -> LatencyProfile:
    columns: dict[str, Any] = {
        "kind": ["order", "order", "model"],
        "ts": np.array([10, 20, 30]),
        "entry_ns": np.array([1, 2, np.iinfo(np.int64).min]),
        "message": ["new", "cancel", None],
    }
    return make_profile("small", FACTS, columns | changes)


def test_a_profile_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    save_profile(small(), path)
    again = load_profile(path)
    assert again.facts == FACTS
    assert again.frame.equals(small().frame)
    assert again.frame.columns == list(COLUMNS)
    assert again.stages() == ["entry"]
    assert again.count("entry", "cancel") == 1


def test_a_file_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    save_profile(small(), path)
    assert load_profile(path).numbers("ts")[0] == 10
    save_profile(small(ts=np.array([11, 20, 30]), rate=np.array([1, 2, 3])), path)
    assert load_profile(path).numbers("ts")[0] == 11


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"service_ns": np.array([0, -7, 0])}, r"service_ns is -7 in row 1: both its stamps"),
        ({"wait_ns": np.array([0, 0, -1])}, r"wait_ns is -1 in row 2"),
        ({"feed_ns": np.array([-4, 0, 0])}, r"feed_ns is -4 in row 0.*clock|clocks differ"),
        ({"batch": np.array([1, 0, 1])}, r"batch is 0 in row 1: want at least 1"),
        ({"message": ["new", "amend", None]}, r"message 'amend' is unknown: want one of new"),
        ({"kind": ["order", "orders", "model"]}, r"kind 'orders' is unknown: want one of order"),
    ],
)
def test_wrong_rows_are_named(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        small(**changes)


def test_a_negative_network_leg_is_told_from_a_negative_service() -> None:
    with pytest.raises(DataError, match="two clocks differ") as feed:
        small(feed_ns=np.array([-4, 0, 0]))
    with pytest.raises(DataError, match="one clock") as service:
        small(service_ns=np.array([-4, 0, 0]))
    assert "hft latency fit" in str(feed.value)
    assert "hft latency fit" not in str(service.value)


def rewritten(tmp_path: Path, change: Any) -> Path:
    path = tmp_path / "p.parquet"
    save_profile(small(), path)
    table = pq.read_table(path)
    pq.write_table(change(table), path)
    return path


def with_column(name: str, values: Any) -> Any:
    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        return table.set_column(at, name, pa.array(values))

    return change


def with_facts(**changes: Any) -> Any:
    def change(table: pa.Table) -> pa.Table:
        facts = msgspec.to_builtins(FACTS) | changes
        return table.replace_schema_metadata({METADATA_KEY: msgspec.json.encode(facts)})

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_column("ts", [10, 9, 30]), r"ts goes back in row 1, from 10 to 9"),
        (with_column("ts", [10, None, 30]), r"ts is null in row 1"),
        (with_column("entry_ns", [1.0, float("nan"), 2.0]), r"entry_ns is NaN in row 1"),
        (with_column("entry_ns", np.array([1, 2**63, 2], np.uint64)), r"is 9223372036854775808 in"),
        (with_column("entry_ns", [1.5, 2.0, 2.0]), r"entry_ns is Float64: want whole numbers"),
        (with_column("message", [1, 2, 3]), r"message is Int64: want text"),
        (lambda table: table.drop_columns(["rate", "batch"]), r"lacks columns rate, batch"),
        (lambda table: table.slice(0, 0), r"has no rows"),
        (with_facts(version=9), r"has version 9; this release reads 1"),
        (with_facts(origin="guessed"), r"is damaged: .*guessed"),
        (lambda table: table.replace_schema_metadata({}), r"metadata have no hft.latency_profile"),
    ],
)
def test_wrong_files_are_refused(tmp_path: Path, change: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        load_profile(rewritten(tmp_path, change))


def test_absent_and_strange_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="those shipped are colocated, same-region"):
        load_profile("colocted")
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(DataError, match="is not a latency profile"):
        load_profile(tmp_path / "x.parquet")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_have_every_stage_and_say_that_they_are_made_up(name: str) -> None:
    profile = load_profile(name)
    assert profile.facts.origin == "synthetic"
    assert profile.stages() == ["feed", "entry", "response", "compute", "risk", "inference"]
    for message in ("new", "cancel", "replace"):
        assert profile.count("entry", message) >= 1000
    rates = profile.numbers("rate")
    entry = profile.numbers("entry_ns")
    orders = profile.rows(["entry"])
    busy = rates[orders] >= np.quantile(rates[orders], 0.95)
    assert np.median(entry[orders][busy]) > 1.05 * np.median(entry[orders][~busy])


def test_a_shipped_profile_is_the_same_in_every_process(tmp_path: Path) -> None:
    save_profile(synthetic_profile("colocated"), tmp_path / "here.parquet")
    code = (
        "from pathlib import Path; from hft.execution.profiles import *;"
        f"save_profile(load_profile('colocated'), Path({str(tmp_path / 'there.parquet')!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "here.parquet").read_bytes() == (tmp_path / "there.parquet").read_bytes()


def test_a_profile_is_written_whole_and_under_its_own_kind_of_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a profile is a .parquet file, .*README.md is .md"):
        save_profile(small(), tmp_path / "README.md")
    with pytest.raises(OSError, match="No such file") as absent:
        save_profile(small(), tmp_path / "nowhere" / "mine.parquet")
    assert absent.value.filename == str(tmp_path / "nowhere" / "mine.parquet")
    assert list(tmp_path.iterdir()) == []
