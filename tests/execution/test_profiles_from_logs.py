"""Profiles from order logs, and the command that makes and shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from hft.cli.main import cli
from hft.errors import ConfigError, DataError
from hft.execution.profile_of_log import LogColumns, LogOptions, profile_of_log
from hft.execution.profile_view import MEASURED, about, table_of
from hft.execution.profiles import load_profile
from hft.execution.synthetic_profiles import synthetic_profile

SENT = 1_700_000_000_000_000_000
ROWS = {
    "req_ts": [SENT, SENT + 10_000_000, SENT + 20_000_000],
    "exch_ts": [SENT + 900_000, SENT + 10_600_000, SENT + 20_700_000],
    "resp_ts": [SENT + 3_000_000, SENT + 12_100_000, SENT + 24_000_000],
}


def hft(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(each) for each in arguments])


def log(folder: Path, **columns: Any) -> Path:
    path = folder / "orders.csv"
    pl.DataFrame(ROWS | columns).write_csv(path)
    return path


def legs(profile: Any) -> list[list[int]]:
    return [profile.numbers(name).tolist() for name in ("entry_ns", "response_ns")]


def test_a_log_of_one_clock_is_taken_as_it_is(tmp_path: Path) -> None:
    made = profile_of_log(log(tmp_path), options=LogOptions(offset="none"))
    assert legs(made) == [[900_000, 600_000, 700_000], [2_100_000, 1_500_000, 3_300_000]]
    assert made.facts.clock_offset is None
    assert made.facts.origin == "measured"
    assert made.count("entry", "new") == 3


def test_the_offset_is_the_middle_of_its_bounds_and_keeps_round_trips(tmp_path: Path) -> None:
    made = profile_of_log(log(tmp_path))
    offset = made.facts.clock_offset
    assert offset is not None
    # -600,000 <= theta <= 1,500,000
    assert (offset.estimate_ns, offset.half_width_ns) == (450_000, 1_050_000)
    entry, response = legs(made)
    assert entry == [1_350_000, 1_050_000, 1_150_000]
    assert [a + b for a, b in zip(entry, response, strict=True)] == [
        3_000_000,
        2_100_000,
        4_000_000,
    ]


def test_an_offset_that_makes_a_leg_negative_is_refused(tmp_path: Path) -> None:
    made = profile_of_log(log(tmp_path), options=LogOptions(offset=-600_000))
    assert legs(made)[0] == [300_000, 0, 100_000]
    with pytest.raises(ConfigError, match=r"offset is 2000000 ns.*want -600000 to 1500000 ns"):
        profile_of_log(log(tmp_path), options=LogOptions(offset=2_000_000))


def test_a_feed_narrows_the_offset_and_becomes_a_leg(tmp_path: Path) -> None:
    event = [SENT - 250_000, SENT + 9_700_000, SENT + 19_100_000]
    received = [SENT - 50_000, SENT + 9_950_000, SENT + 19_900_000]
    made = profile_of_log(log(tmp_path, feed_exch_ts=event, feed_recv_ts=received))
    offset = made.facts.clock_offset
    assert offset is not None
    assert (offset.estimate_ns, offset.half_width_ns) == (-200_000, 400_000)
    assert made.numbers("feed_ns").tolist() == [400_000, 450_000, 1_000_000]


def test_stamps_of_whole_ms_are_spread_over_them(tmp_path: Path) -> None:
    n = 400
    sent = SENT + np.arange(n) * 10_000_000
    at_venue = sent + 3_456_789 + (np.arange(n) * 7919) % 1_000_000
    rows = {
        "req_ts": sent,
        "exch_ts": at_venue // 1_000_000 * 1_000_000,
        "resp_ts": at_venue + 5_000_000,
    }
    path = tmp_path / "orders.parquet"
    pl.DataFrame(rows).write_parquet(path)
    noted = profile_of_log(path, options=LogOptions(offset="none"))
    assert "--quantum 1ms spreads them" in noted.facts.notes[0]
    made = profile_of_log(path, options=LogOptions(offset="none", quantum_ns=1_000_000))
    entry = made.numbers("entry_ns")
    assert np.abs(entry - (at_venue - sent)).max() < 1_000_000
    assert abs(entry.mean() - (at_venue - sent).mean()) < 40_000
    assert made.facts.created_from["quantum_ns"] == 1_000_000
    again = profile_of_log(path, options=LogOptions(offset="none", quantum_ns=1_000_000))
    assert (again.numbers("entry_ns") == entry).all()


def test_hftbacktests_order_latency_is_read_and_rejected_ones_are_counted(tmp_path: Path) -> None:
    names = ("req_ts", "exch_ts", "resp_ts", "_padding")
    rows = np.zeros(4, [(name, "<i8") for name in names])
    for name in names[:3]:
        rows[name][:3] = ROWS[name]
    rows[3] = (SENT + 30_000_000, 0, SENT + 31_000_000, 0)
    path = tmp_path / "latency.npz"
    np.savez(path, data=rows)
    made = profile_of_log(path, options=LogOptions(offset="none"))
    assert legs(made)[0] == [900_000, 600_000, 700_000]
    assert made.facts.notes == (
        "Left out for want of a stamp, as where they never arrived: 1 of the log.",
    )


def test_other_names_units_ids_and_messages(tmp_path: Path) -> None:
    path = tmp_path / "gateway.csv"
    path.write_text("id,what,out,there,back\n7,New,1000,1002,1005\n8,CANCEL,2000,2001,2004\n")
    columns = LogColumns("out", "there", "back", order_id="id", message="what")
    made = profile_of_log(path, columns, LogOptions(unit="us", offset="none"))
    assert legs(made) == [[2_000, 1_000], [3_000, 3_000]]
    assert made.numbers("order_id").tolist() == [7, 8]
    assert made.frame["message"].to_list() == ["new", "cancel"]


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"resp_ts": [SENT - 1, *ROWS["resp_ts"][1:]]}, DataError, "in row 0: both are our clock"),
        ({"exch_ts": [0, 0, -1]}, DataError, "no message has all three stamps"),
        ({"message": ["new", "amend", "new"]}, DataError, "message is 'amend' in row 1"),
        ({"exch_ts": ["a", "b", "c"]}, DataError, "exch_ts is String; 'a' in row 0: want numbers"),
        ({"resp_ts": [2**62 + 1.0, 1e19, 1e3]}, DataError, "resp_ts is 1e[+]19 in row 1: no time"),
        ({"feed_exch_ts": [1, 2, 3]}, ConfigError, "both stamps of the feed"),
        (
            {"exch_ts": [SENT - 900_000_000, SENT + 500_000_000, SENT + 20_700_000]},
            DataError,
            "no single clock offset fits",
        ),
    ],
)
def test_logs_that_cannot_be_are_refused(
    tmp_path: Path, changes: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        profile_of_log(log(tmp_path, **changes))


def test_negative_legs_without_an_offset_are_refused_as_clocks_that_differ(tmp_path: Path) -> None:
    early = [each - 5_000_000 for each in ROWS["exch_ts"]]
    with pytest.raises(DataError, match=r"entry_ns is -4100000 in row 0: .*two clocks differ"):
        profile_of_log(log(tmp_path, exch_ts=early), options=LogOptions(offset="none"))
    fixed = profile_of_log(log(tmp_path, exch_ts=early), options=LogOptions(offset=5_000_000))
    assert legs(fixed)[0] == [900_000, 600_000, 700_000]


def test_absent_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no column 'sent' for the request; it has req_ts"):
        profile_of_log(log(tmp_path), LogColumns(request="sent"))
    with pytest.raises(ConfigError, match="no column 'oid' for the order id"):
        profile_of_log(log(tmp_path), LogColumns(order_id="oid"))
    with pytest.raises(ConfigError, match="no order log at"):
        profile_of_log(tmp_path / "none.csv")


@pytest.mark.parametrize("content", [b"", b"PK\3\4junk", b"junk"])
@pytest.mark.parametrize("name", ["log.npz", "log.npy", "log.parquet"])
def test_damaged_files_are_refused_by_name(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=f"{name} cannot be read as an order log"):
        profile_of_log(tmp_path / name)


@pytest.mark.parametrize("quantum_ns", [0, -1, 1_000_000_001])
def test_a_quantum_is_a_second_at_most(quantum_ns: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"quantum is .*at least 1ns, at most 1s"):
        profile_of_log(log(tmp_path), options=LogOptions(quantum_ns=quantum_ns))


def test_the_command_makes_a_profile_and_shows_it(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    made = hft("latency", "fit", log(tmp_path), "-o", out, "--clock-offset", "-100us")
    assert made.exit_code == 0, made.output
    assert load_profile(out).numbers("entry_ns").tolist() == [800_000, 500_000, 600_000]
    shown = hft("latency", "show", out, "--picture", tmp_path / "p.svg")
    assert shown.exit_code == 0
    assert "entry" in shown.output
    assert "800 µs" in shown.output
    assert (tmp_path / "p.svg").read_text().startswith("<svg")


def test_the_command_refuses_in_words(tmp_path: Path) -> None:
    def told(*arguments: Any) -> str:
        return str(hft("latency", *arguments).exception)

    assert "no such file" in told("show", "colo")
    assert "an .svg file" in told("show", "colocated", "--picture", tmp_path / "p.gif")
    assert "want at least 1ns" in told("fit", "x.csv", "-o", "p", "--quantum", "0ns")
    assert "its stamps need no" in told("fit", tmp_path, "-o", "p", "--unit", "ms")
    assert "is not a run folder" in told("fit", tmp_path, "-o", "p")


def test_the_table_tells_stages_messages_and_rates() -> None:
    table = table_of(synthetic_profile("colocated"))
    names = [row[0].strip() for row in table.rows]
    assert {"feed", "entry", "response", "compute", "risk", "inference"} <= set(names) & {*MEASURED}
    assert {"new", "cancel", "replace"} <= set(names)
    assert sum(name.startswith("rate ") for name in names) >= 12
    assert all(len(row) == len(table.head) for row in table.rows)
    assert about(synthetic_profile("colocated"))[0].startswith("synthetic")
