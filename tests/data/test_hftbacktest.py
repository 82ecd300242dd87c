"""Files of hftbacktest: every kind, both sides, and what that library lets pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hft.adapters.hftbacktest import CHUNK, EVENT_DTYPE, HftbacktestFile, to_events
from hft.data import Store, check, import_source
from hft.errors import DataError, OutOfOrder, SchemaError
from hft.types import SEEN_BY_BOTH, Flag, InstrumentSpec, Kind

EXCH, LOCAL, BUY, SELL = 1 << 31, 1 << 30, 1 << 29, 1 << 28
BOTH = EXCH | LOCAL
SPEC = InstrumentSpec(symbol="X", venue="V", tick=0.1, lot=0.001)


def rows_of(*rows: tuple[object, ...]) -> np.ndarray:
    """Rows of (ev, exch_ts, local_ts, px, qty[, order_id])."""
    out = np.zeros(len(rows), EVENT_DTYPE)
    for at, row in enumerate(rows):
        out[at] = (*row, 0, 0, 0.0) if len(row) == 5 else (*row, 0, 0.0)
    return out


def many(count: int = 300) -> np.ndarray:
    """A sound L2 feed, packets of two."""
    rng = np.random.default_rng(4)
    out = np.zeros(count, EVENT_DTYPE)
    out["exch_ts"] = 1_700_000_000_000_000_000 + np.arange(count) // 2 * 1_000_000
    out["local_ts"] = out["exch_ts"] + 3_000_000
    buy = rng.random(count) < 0.5
    kind = np.where(rng.random(count) < 0.2, 2, 1)
    out["ev"] = np.where(buy, BUY, SELL) | BOTH | kind
    out["px"] = np.round(np.where(buy, 59_999.9, 60_000.1), 1)
    out["qty"] = np.round(rng.integers(1, 999, count) * 0.001, 3)
    return out


def test_kinds_sides_and_flags() -> None:
    rows = rows_of(
        (BOTH | BUY | 3, 1, 5, np.nan, 0.0),
        (BOTH | SELL | 3, 1, 5, 60_000.1, 0.0),
        (BOTH | 3, 1, 5, 0.0, 0.0),
        (BOTH | BUY | 4, 1, 5, 59_999.9, 1.5),
        (BOTH | SELL | 1, 2, 6, 60_000.1, 0.0),
        (BOTH | BUY | 2, 3, 7, 60_000.1, 0.25),
        (BOTH | SELL | 5, 4, 8, 60_000.2, 0.5),
        (BOTH | BUY | 10, 5, 9, 1.0, 0.01, 77),
        (BOTH | BUY | 12, 6, 10, 1.1, 0.02, 77),
        (BOTH | BUY | 13, 7, 11, 1.1, 0.01, 77),
        (BOTH | BUY | 11, 8, 12, 1.1, 0.0, 77),
    )
    events = to_events(rows, SPEC)
    kinds = [Kind(k).name for k in events["kind"]]
    assert kinds[:3] == ["CLEAR"] * 3
    assert kinds[3:] == ["LEVEL", "LEVEL", "TRADE", "BBO", "ADD", "MODIFY", "EXECUTE", "CANCEL"]
    assert events["ref_id"][:3].tolist() == [0, 1, 0]
    assert events["price"].tolist()[1:5] == [600_001, 0, 599_999, 600_001]
    assert events["qty"].tolist()[3:6] == [1500, 0, 250]
    assert events["side"].tolist() == [1, -1, 0, 1, -1, 1, -1, 1, 1, 1, 1]
    assert events["order_id"].tolist()[7:] == [77] * 4
    assert [bool(f & Flag.LAST) for f in events["flags"]] == [False] * 3 + [True] * 8
    assert [bool(f & Flag.RECOVERED) for f in events["flags"]] == [r == 3 for r in range(11)]
    by_levels, by_order = events[:7], events[7:]  # a feed is one or the other
    assert check(by_levels).ok
    assert check(by_order).ok


def test_halves_of_a_feed_that_reorders() -> None:
    rows = rows_of(
        (EXCH | BUY | 2, 10, 90, 1.0, 1.0),
        (BOTH | BUY | 1, 20, 80, 1.0, 1.0),
        (LOCAL | BUY | 2, 10, 90, 1.0, 1.0),
    )
    events = to_events(rows, SPEC)
    assert [int(f) & SEEN_BY_BOTH for f in events["flags"]] == [1, 3, 2]
    assert all(f & Flag.LAST for f in events["flags"])
    assert check(events).ok


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_import(tmp_path: Path, suffix: str) -> None:
    rows = many()
    path = tmp_path / f"feed.{suffix}"
    np.save(path, rows) if suffix == "npy" else np.savez_compressed(path, data=rows)
    store = Store(tmp_path / "s")
    done = import_source(HftbacktestFile(path, SPEC), store)
    assert done.rows == 300
    assert (store.read("X.V") == to_events(rows, SPEC)).all()


def test_batches_end_with_a_packet(tmp_path: Path, monkeypatch) -> None:
    import hft.adapters.hftbacktest as adapter

    monkeypatch.setattr(adapter, "CHUNK", 7)
    np.save(tmp_path / "f.npy", many(101))
    batches = [b.events for b in HftbacktestFile(tmp_path / "f.npy", SPEC).batches()]
    assert len(batches) > 10
    assert all(b["flags"][-1] & Flag.LAST for b in batches)
    assert (np.concatenate(batches) == to_events(many(101), SPEC)).all()
    assert CHUNK > 7


def test_the_callers_array_stays_untouched() -> None:
    rows = many()
    before = rows.copy()
    rows.flags.writeable = False
    first = to_events(rows, SPEC)
    first["ts_recv"] += 7
    assert (rows == before).all()
    assert (to_events(rows, SPEC)["ts_recv"] == before["local_ts"]).all()


def test_time_that_goes_back_is_refused_or_split_and_counted(tmp_path: Path) -> None:
    rows = rows_of((BOTH | BUY | 1, 5000, 6000, 1.0, 1.0), (BOTH | BUY | 2, 3000, 6001, 1.0, 1.0))
    np.save(tmp_path / "f.npy", rows)
    source = HftbacktestFile(tmp_path / "f.npy", SPEC)
    with pytest.raises(OutOfOrder, match=r"row 1: ts_event 3000 goes back 2 us"):
        import_source(source, Store(tmp_path / "s"))
    done = import_source(source, Store(tmp_path / "s"), repair=True)
    assert done.repaired == {"rows split by side": 1}


def test_receive_before_event_is_refused_with_its_bound(tmp_path: Path) -> None:
    rows = many()
    rows["local_ts"] -= 10_000_000
    rows["local_ts"][200:] -= 500_000_000
    rows["exch_ts"][200:] -= 500_000_000
    rows["local_ts"][250:] += 400_000_000
    np.save(tmp_path / "f.npy", many())
    bad = many()
    bad["local_ts"] = bad["exch_ts"] - 7_000_000
    np.save(tmp_path / "g.npy", bad)
    for repair in (False, True):
        with pytest.raises(DataError, match=r"behind the venue's by at least 7 ms"):
            import_source(
                HftbacktestFile(tmp_path / "g.npy", SPEC), Store(tmp_path / "s"), repair=repair
            )
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (("qty", 0.0), "qty of a TRADE row is 0"),
        (("qty", -5.0), "qty of a TRADE row is -5000"),
        (("px", np.nan), "row 1: price is nan"),
        (("px", -5.0), "price of a TRADE row is -50"),
        (("qty", 0.0004), r"qty 0\.0004 is off the lot of 0\.001; the nearest valid value is 0\.0"),
        (("px", 100.04), r"price 100\.04 is off the tick of 0\.1; .* 100\.0"),
        (("ev", BOTH | BUY | SELL | 1), "row 1: ev is 0xf"),
        (("ev", BOTH | BUY | 99), "row 1: ev is"),
        (("ev", 1 << 40 | BOTH | BUY | 1), "row 1: ev is"),
        (("order_id", 1 << 63), "order_id 9223372036854775808 does not fit"),
    ],
)
def test_rows_that_the_library_takes_and_we_do_not(tmp_path: Path, value, says: str) -> None:
    rows = rows_of(
        (BOTH | BUY | 1, 1, 5, 100.0, 1.0),
        (BOTH | BUY | 2, 2, 6, 100.0, 1.0),
        (BOTH | BUY | 1, 3, 7, 100.0, 1.0),
    )
    rows[value[0]][1] = value[1]
    np.save(tmp_path / "f.npy", rows)
    with pytest.raises(DataError, match=says):
        import_source(HftbacktestFile(tmp_path / "f.npy", SPEC), Store(tmp_path / "s"))
    assert not (tmp_path / "s").exists()


def test_prints_inside_the_tick_are_rounded_on_demand(tmp_path: Path) -> None:
    rows = rows_of((BOTH | BUY | 2, 1, 5, 100.06, 1.0))
    np.save(tmp_path / "f.npy", rows)
    store = Store(tmp_path / "s")
    source = HftbacktestFile(tmp_path / "f.npy", SPEC, repair=True)
    assert import_source(source, store, repair=True).counts["prints rounded"] == 1
    assert store.read("X.V")["price"].tolist() == [1001]


def test_wrong_arrays_files_and_facts(tmp_path: Path) -> None:
    for bad in (np.zeros((4, 8)), np.zeros((2, 2), EVENT_DTYPE), [1, 2]):
        with pytest.raises(SchemaError, match=r"dtype|shape"):
            to_events(bad, SPEC)  # type: ignore[arg-type]
    np.save(tmp_path / "f.npy", np.zeros((4, 8)))
    with pytest.raises(SchemaError, match="event_dtype"):
        HftbacktestFile(tmp_path / "f.npy", SPEC)
    np.savez(tmp_path / "f.npz", other=many(2))
    with pytest.raises(SchemaError, match="want an array `data`"):
        HftbacktestFile(tmp_path / "f.npz", SPEC)
    with pytest.raises(DataError, match="no such file"):
        HftbacktestFile(tmp_path / "none.npy", SPEC)
    no_tick = InstrumentSpec(symbol="X", venue="V", tick=0.0, lot=1)
    with pytest.raises(DataError, match="tick is 0"):
        to_events(many(2), no_tick)


def test_order_by_order_files_change_the_book_by_cancel_and_modify_alone() -> None:
    rows = rows_of(
        (BOTH | BUY | 2, 1, 5, 1.0, 0.01),
        (BOTH | BUY | 10, 2, 6, 1.0, 0.05, 77),
        (BOTH | SELL | 2, 3, 7, 1.0, 0.02),
        (BOTH | BUY | 13, 3, 7, 1.0, 0.02, 77),
        (BOTH | BUY | 12, 3, 7, 1.0, 0.03, 77),
        (BOTH | BUY | 11, 4, 8, 1.0, 0.01, 77),  # whatever its size: the whole order, as there
    )
    events = to_events(rows, SPEC)
    kept = int(SEEN_BY_BOTH | Flag.LAST)
    told = [(Kind(e["kind"]).name, int(e["qty"]), int(e["flags"]) & ~kept) for e in events]
    assert told == [
        ("TRADE", 10, Flag.NO_CHANGE),
        ("ADD", 50, 0),
        ("TRADE", 20, Flag.NO_CHANGE),
        ("EXECUTE", 20, Flag.NO_PRINT | Flag.NO_CHANGE),
        ("MODIFY", 30, 0),
        ("CANCEL", 0, 0),
    ]
    assert check(events).ok
