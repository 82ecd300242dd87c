"""Bars: what a file must say, what is refused, and what rows are made of a bar."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from conformance import rows_of

from hft.adapters.bars import open_files
from hft.cli.main import cli
from hft.data import Store, import_source
from hft.data.importing import NO_DEPTH
from hft.data.sources import Request
from hft.errors import ConfigError, DataError, SchemaError
from hft.types import Flag, Kind

START_NS = 1_704_186_000_000_000_000  # 2024-01-02T09:00
SECOND_NS = 1_000_000_000
FACTS = {"symbol": "X", "venue": "V", "tick": 0.01, "lot": 1.0}
SAID = {"stamp": "start", "bar": "1min", "spread_ticks": 2}
HEADER = "ts,open,high,low,close,volume"
UP = "2024-01-02T09:00:00,100.00,100.10,99.95,100.05,43"
DOWN = "2024-01-02T09:01:00,100.05,100.06,99.90,99.92,8"


def source(tmp_path: Path, *lines: str, repair: bool = False, **said: Any) -> Any:
    path = tmp_path / "bars.csv"
    path.write_text("\n".join(lines) + "\n")
    return opened(path, repair=repair, **said)


def opened(path: Path, *, repair: bool = False, **said: Any) -> Any:
    settings = {k: v for k, v in (SAID | said).items() if v is not None}
    return open_files(Request("bars", [path], FACTS, repair=repair, settings=settings))[0]


def prints(rows: Any) -> list[tuple[int, int, int, int]]:
    """(seconds from START_NS, ticks, lots, side)."""
    mine = rows[rows["kind"] == Kind.TRADE]
    seconds = (mine["ts_event"] - START_NS) / SECOND_NS
    return [
        (round(s), int(r["price"]), int(r["qty"]), int(r["side"]))
        for s, r in zip(seconds.tolist(), mine, strict=True)
    ]


def quotes(rows: Any, field: str = "price") -> list[tuple[int, int]]:
    """(bid, ask) at the end of each packet that has both."""
    best: dict[int, dict[int, int]] = {1: {}, -1: {}}
    out = []
    for row in rows:
        if row["kind"] == Kind.LEVEL:
            best[int(row["side"])][int(row["price"])] = int(row["qty"])
            best = {side: {p: q for p, q in of.items() if q} for side, of in best.items()}
            if best[1] and best[-1]:
                assert max(best[1]) < min(best[-1]), "crossed"
        if row["flags"] & Flag.LAST and best[1]:
            ((bid, bid_lots),), ((ask, ask_lots),) = best[1].items(), best[-1].items()
            out.append((bid, ask) if field == "price" else (bid_lots, ask_lots))
    return out


def test_a_rising_bar_prints_open_low_high_close(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP)])
    assert prints(rows) == [
        (0, 10_000, 10, 0),
        (20, 9_995, 11, -1),
        (40, 10_010, 11, 1),
        (60, 10_005, 11, -1),
    ]


def test_a_falling_bar_prints_its_high_first(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP, DOWN)])
    assert prints(rows)[4:] == [
        (60, 10_005, 2, -1),  # where the last closed: as before
        (80, 10_006, 2, 1),
        (100, 9_990, 2, -1),
        (120, 9_992, 2, 1),
    ]


def test_the_bars_of_a_run_are_those_of_the_file(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP, DOWN)])
    instants = rows["ts_event"][rows["flags"] & Flag.LAST != 0] - START_NS
    # A print on the grid belongs to the bar that ends there.
    assert ((instants - 1) // (60 * SECOND_NS)).tolist() == [0] * 4 + [1] * 4


def test_bars_stamped_with_their_end_are_told_one_bar_earlier(tmp_path: Path) -> None:
    begun = rows_of([source(tmp_path, HEADER, UP)])
    ended = rows_of([source(tmp_path, HEADER, UP, stamp="end")])
    assert (begun["ts_event"] - ended["ts_event"] == 60 * SECOND_NS).all()


def test_the_print_stands_on_the_side_that_was_taken(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP, spread_ticks=1)])
    assert quotes(rows) == [
        (9_999, 10_000),  # nobody knows: as if bought
        (9_995, 9_996),
        (10_009, 10_010),
        (10_005, 10_006),
    ]


def test_sizes_at_the_touch_are_a_share_of_the_last_whole_bar(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP, DOWN, size_share=0.5)])
    lots = [bid for bid, _ in quotes(rows, "qty")]
    assert lots == [1, 1, 1, 22, 22, 22, 22, 4]


def test_nothing_of_a_bar_is_told_before_its_time(tmp_path: Path) -> None:
    """Rows up to an instant are the same whatever comes after it in the file."""
    changed = DOWN.replace("99.90", "95.00").replace(",8", ",9999").replace("99.92", "96.00")
    rows = rows_of([source(tmp_path, HEADER, UP, DOWN)])
    other = rows_of([source(tmp_path, HEADER, UP, changed)])
    until = START_NS + 60 * SECOND_NS + 1
    assert (rows[rows["ts_event"] < until] == other[other["ts_event"] < until]).all()
    at_open = rows["ts_event"] == until
    same = [name for name in rows.dtype.names if name != "qty"]
    assert (rows[at_open][same] == other[at_open][same]).all()
    assert (rows["qty"][at_open][1:] == other["qty"][at_open][1:]).all()


def test_quotes_of_the_file_stand_at_the_close(tmp_path: Path) -> None:
    lines = (f"{HEADER},bid,ask", f"{UP},100.04,100.07", f"{DOWN},99.91,99.92")
    rows = rows_of([source(tmp_path, *lines, spread_ticks=None)])
    assert (rows["kind"][:3] == Kind.TRADE).all()  # no quote before the first close
    assert quotes(rows) == [
        (10_004, 10_007),
        (10_004, 10_007),
        (10_004, 10_007),
        (9_989, 9_992),
        (9_991, 9_992),
    ]


def test_the_book_is_never_crossed_and_has_one_level_a_side(tmp_path: Path) -> None:
    for spread in (1, 2, 3):
        assert len(quotes(rows_of([source(tmp_path, HEADER, UP, DOWN, spread_ticks=spread)]))) == 8


def test_a_bar_without_volume_only_moves_the_quotes(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP.rsplit(",", 1)[0] + ",0")])
    assert prints(rows) == []
    assert len(quotes(rows)) == 4


def test_what_is_left_over_of_a_volume_goes_to_the_close_first(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, HEADER, UP.rsplit(",", 1)[0] + ",2")])
    assert [(second, lots) for second, _, lots, _ in prints(rows)] == [(40, 1), (60, 1)]


def test_columns_have_the_names_they_have(tmp_path: Path) -> None:
    lines = ("t;o;h;l;c;v", "1704186000;100;100.1;99.95;100.05;43")
    said = dict(zip(("ts", "open", "high", "low", "close", "volume"), "tohlcv", strict=True))
    rows = rows_of([source(tmp_path, *lines, unit="s", separator=";", **said)])
    assert (rows == rows_of([source(tmp_path, HEADER, UP)])).all()


def test_a_file_without_a_header_is_told_its_columns(tmp_path: Path) -> None:
    rows = rows_of([source(tmp_path, UP, DOWN, names=HEADER)])
    assert (rows == rows_of([source(tmp_path, HEADER, UP, DOWN)])).all()


def test_what_must_be_said_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"start or the end of its interval\?.*stamp=start"):
        source(tmp_path, HEADER, UP, stamp=None)
    with pytest.raises(ConfigError, match=r"how long is a bar\? --set bar=1min"):
        source(tmp_path, HEADER, UP, bar=None)
    with pytest.raises(ConfigError, match=r"what spread is to be assumed.*spread_ticks=2"):
        source(tmp_path, HEADER, UP, spread_ticks=None)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"stamp": "middle"}, "'middle'"),
        ({"spread_ticks": 0}, ">= 1"),
        ({"size_share": 0.0}, "> 0"),
        ({"bar": "1us"}, "at least 1ms"),
        ({"spreads": 3}, "there are stamp, bar, spread_ticks"),
        ({"bid": "b"}, "no column 'b'"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        source(tmp_path, HEADER, UP, **said)


BAD = {
    "high below low": "2024-01-02T09:01:00,100,99,101,100,5",
    "open outside": "2024-01-02T09:01:00,102,101,99,100,5",
    "close outside": "2024-01-02T09:01:00,100,101,99,98,5",
    "negative volume": "2024-01-02T09:01:00,100,101,99,100,-5",
    "finite number": "2024-01-02T09:01:00,100,101,nan,100,5",
    "they overlap, or bar= is wrong": "2024-01-02T09:00:30,100,101,99,100,5",
    "want them in order": "2024-01-02T08:59:00,100,101,99,100,5",
    "a time after 1990": "1970-01-02T09:01:00,100,101,99,100,5",
}


@pytest.mark.parametrize("why", BAD)
def test_bars_that_cannot_be_are_refused_by_line(tmp_path: Path, why: str) -> None:
    lines = (HEADER, UP, BAD[why], "2024-01-02T09:02:00,100,101,99,100,5")
    with pytest.raises(DataError, match=rf"line 3.*{why}"):
        rows_of([source(tmp_path, *lines)])
    mended = source(tmp_path, *lines, repair=True)
    rows = rows_of([mended])
    assert (rows == rows_of([source(tmp_path, *lines[:2], lines[3])])).all()
    assert sum(n for name, n in mended.counts.items() if "unreadable" in name) == 1


def test_a_bid_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2.*spread_ticks"):
        rows_of([source(tmp_path, HEADER, "2024-01-02T09:00:00,0.02,0.02,0.01,0.01,4")])


def test_a_quote_that_is_crossed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 2.*bid not below ask"):
        rows_of([source(tmp_path, f"{HEADER},bid,ask", f"{UP},100.06,100.05")])


def test_a_file_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no column 'volume'"):
        rows_of([source(tmp_path, HEADER.replace("volume", "v"), UP)])


def test_what_bars_cannot_tell_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "s")
    import_source(source(tmp_path, HEADER, UP, DOWN), store)
    told = store.cannot_tell("X.V")
    assert NO_DEPTH in told
    assert any("knows the future" in sentence for sentence in told)
    assert any("taken as 2 ticks" in sentence for sentence in told)


def test_the_command_takes_settings(tmp_path: Path) -> None:
    path = tmp_path / "bars.csv"
    path.write_text(f"{HEADER}\n{UP}\n{DOWN}\n")
    command = ["data", "import", "bars", str(path), "--store", str(tmp_path / "s")]
    command += [f"--{name}={value}" for name, value in FACTS.items()]
    said = [f"--set={name}={value}" for name, value in SAID.items()]
    done = CliRunner().invoke(cli, command + said, catch_exceptions=False)
    assert "X.V: 36 rows" in done.output
    other = CliRunner().invoke(cli, ["data", "import", "csv", *command[3:6], "--set=bar=1s"])
    assert "--set is for bars" in str(other.exception or other.output)
