"""DBN files: what records become, symbols and facts, real files, and damage."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest

from hft.adapters.databento import DbnSource
from hft.adapters.databento.sessions import globex
from hft.data import Store, check, import_source
from hft.data.books import NO_PRICE, BookStream
from hft.data.sources import open_sources
from hft.errors import ConfigError, DataError, HftError, SchemaError
from hft.types import Flag, Kind, Trading

dbn = pytest.importorskip("databento_dbn", reason="needs the extra `databento`")

T0 = 1_704_844_800_000_000_000  # 2024-01-10, a Wednesday, 18:00 in Chicago: Globex is open
LAST, SNAPSHOT, BAD_RECV, MAYBE_BAD = 128, 32, 8, 4
UNDEF = (1 << 63) - 1
UNIT = 1_000_000_000
ROUNDS = 2 * hypothesis.settings().max_examples // 5


class File:
    """Writes records of DBN version 1 to 3."""

    def __init__(self, schema: str, version: int = 3, dataset: str = "GLBX.MDP3") -> None:
        self.schema, self.version, self.dataset = schema, version, dataset
        self.out = bytearray()
        self.mappings: list[Any] = []
        self._ts = T0

    def map(self, symbol: str, instrument: int, first: date, last: date) -> File:
        interval = SimpleNamespace(start_date=first, end_date=last, symbol=str(instrument))
        self.mappings.append(SimpleNamespace(raw_symbol=symbol, intervals=[interval]))
        return self

    def record(self, message: str, **fields: Any) -> File:
        layout = getattr(getattr(dbn, f"v{self.version}"), message)
        row = np.zeros(1, np.dtype(layout._dtypes))
        fields = {"publisher_id": 1, "instrument_id": 7, **fields}
        for name, value in fields.items():
            row[name] = value
        row["length"] = row.itemsize // 4
        self.out += row.tobytes()
        return self

    def tick_on(self, ns: int = 1_000) -> File:
        self._ts += ns
        return self

    def _times(self) -> dict[str, int]:
        return {"ts_event": self._ts, "ts_recv": self._ts + 500, "sequence": len(self.out)}

    def mbo(
        self, action: str, side: str, order: int, price: float, size: int,
        flags: int = LAST, **more: Any,
    ) -> File:  # fmt: skip
        fields = {"order_id": order, "size": size, "price": _fixed(price), "flags": flags}
        fields |= {"action": action, "side": side, "rtype": 160, **self._times(), **more}
        return self.record("MBOMsg", **fields)

    def mbp(
        self, action: str, side: str, price: float, size: int,
        bids: list[tuple[float, int]], asks: list[tuple[float, int]],
        flags: int = LAST, **more: Any,
    ) -> File:  # fmt: skip
        levels, message, rtype = (
            (10, "MBP10Msg", 10) if self.schema == "mbp-10" else (1, "MBP1Msg", 1)
        )
        fields: dict[str, Any] = {"price": _fixed(price), "size": size, "flags": flags}
        fields |= {"action": action, "side": side, "rtype": rtype, **self._times()}
        for name, shown in (("bid", bids), ("ask", asks)):
            for k in range(levels):
                price, size = shown[k] if k < len(shown) else (UNDEF, 0)
                fields[f"{name}_px_{k:02}"] = _fixed(price)
                fields[f"{name}_sz_{k:02}"] = size
        return self.record(message, **fields, **more)

    def trade(self, side: str, price: float, size: int) -> File:
        fields = {"price": _fixed(price), "size": size, "action": "T", "side": side, "rtype": 0}
        return self.record("TradeMsg", **fields, **self._times())

    def status(self, action: int) -> File:
        times = self._times()
        del times["sequence"]
        return self.record("StatusMsg", action=action, rtype=18, **times)

    def define(self, tick: float, worth: float, symbol: str = "ABC", currency: str = "USD") -> File:
        fields = {"min_price_increment": _fixed(tick), "currency": currency}
        fields |= {"min_price_increment_amount": _fixed(worth), "raw_symbol": symbol, "rtype": 19}
        return self.record("InstrumentDefMsg", **fields)

    def data(self) -> bytes:
        header = dbn.Metadata(
            self.dataset, T0, dbn.SType.RAW_SYMBOL, dbn.SType.INSTRUMENT_ID,
            dbn.Schema.from_str(self.schema), mappings=self.mappings, version=self.version,
        )  # fmt: skip
        return header.encode() + bytes(self.out)

    def save(self, folder: Path, name: str = "x.dbn") -> Path:
        path, data = folder / name, self.data()
        if path.suffix == ".zst":  # the header and each kilobyte in a frame of its own
            cuts = [
                0,
                len(data) - len(self.out),
                *range(len(data) - len(self.out) + 1024, len(data), 1024),
            ]
            frames = [data[a:b] for a, b in zip(cuts, [*cuts[1:], len(data)], strict=True)]
            data = b"".join(bytes(pa.compress(f, "zstd", asbytes=True)) for f in frames)
        path.write_bytes(data)
        return path


def _fixed(price: float) -> int:
    return UNDEF if price == UNDEF else round(price * UNIT)


def opened(*paths: Path, repair: bool = False, **facts: Any) -> list[DbnSource]:
    return open_sources("databento", list(paths), facts=facts, repair=repair)  # type: ignore[return-value]


def rows_of(source: DbnSource) -> Any:
    rows = np.concatenate([batch.events.copy() for batch in source.batches()])
    check(rows, source.spec).require()
    return rows


def told(rows: Any) -> list[str]:
    """Rows but for trading states, and `|` where a packet ends."""
    return [
        f"{Kind(r['kind']).name} {r['side']:+d} {r['price']}x{r['qty']} #{r['order_id']}"
        + ("|" if r["flags"] & Flag.LAST else "")
        for r in rows
        if r["kind"] != Kind.STATUS
    ]


def book_file(version: int = 3) -> File:
    """Two orders rest, one is hit and then lowered, and pulled."""
    file = File("mbo", version)
    file.mbo("A", "B", 11, 100.25, 5).tick_on().mbo("A", "A", 12, 100.5, 8).tick_on()
    file.mbo("T", "B", 99, 100.5, 3, 0).mbo("F", "A", 12, 100.5, 3, 0)
    file.mbo("M", "A", 12, 100.5, 5).tick_on()
    file.mbo("C", "B", 11, 100.25, 5).tick_on().mbo("N", "N", 0, UNDEF, 0)
    return file


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", ["x.dbn", "x.dbn.zst"])
def test_a_trade_is_a_print_and_its_change_comes_after(
    tmp_path: Path, version: int, name: str
) -> None:
    [source] = opened(book_file(version).save(tmp_path, name))
    rows = rows_of(source)
    assert told(rows) == [
        "ADD +1 401x5 #11|",
        "ADD -1 402x8 #12|",
        "TRADE +1 402x3 #0",
        "EXECUTE -1 402x3 #12",
        "MODIFY -1 402x5 #12|",
        "CANCEL +1 401x5 #11|",
    ]
    silent = Flag.NO_CHANGE | Flag.NO_PRINT
    marks = rows["flags"][rows["kind"] != Kind.STATUS] & silent
    assert marks.tolist() == [0, 0, int(Flag.NO_CHANGE), int(silent), 0, 0]
    assert rows["ref_id"][rows["kind"] == Kind.TRADE] == 99
    assert source.counts["records without an action"] == 1
    assert source.spec.name == "7.GLBX"
    assert source.spec.tick == 0.25
    book = BookStream()
    book.feed(rows)
    assert book.levels(-1, 5).tolist() == [[402, 5, 1]]
    assert not any(book.faults.values())


def test_a_snapshot_rebuilds_the_book_and_is_one_packet(tmp_path: Path) -> None:
    file = File("mbo").mbo("A", "B", 1, 100.25, 5).tick_on()
    file.mbo("R", "N", 0, UNDEF, 0, SNAPSHOT | BAD_RECV)
    file.mbo("A", "B", 2, 100.25, 4, SNAPSHOT | BAD_RECV, ts_event=T0 - 5)
    file.mbo("A", "A", 3, 100.75, 4, SNAPSHOT | BAD_RECV, ts_event=T0 - 9).tick_on()
    file.mbo("A", "B", 4, 100.0, 6)
    [source] = opened(file.save(tmp_path))
    rows = rows_of(source)
    assert told(rows)[1:] == [
        "SNAPSHOT_BEGIN +0 0x0 #0",
        "ADD +1 401x4 #2",
        "ADD -1 403x4 #3",
        "SNAPSHOT_END +0 0x0 #0|",
        "ADD +1 400x6 #4|",
    ]
    marks = Flag.RECOVERED | Flag.UNCERTAIN
    assert (rows["flags"][-5:] & marks).tolist() == [int(marks)] * 4 + [0]
    assert source.counts["snapshot times raised"] == 2
    book = BookStream()
    book.feed(rows)
    assert book.live_orders == 3


def test_two_snapshots_in_a_row_are_two(tmp_path: Path) -> None:
    file = File("mbo")
    for order in (1, 2):
        file.mbo("R", "N", 0, UNDEF, 0, SNAPSHOT).mbo("A", "B", order, 100.25, 4, SNAPSHOT | LAST)
        file.tick_on()
    [source] = opened(file.save(tmp_path))
    assert [row.split()[0] for row in told(rows_of(source))] == [
        "SNAPSHOT_BEGIN", "ADD", "SNAPSHOT_END",
    ] * 2  # fmt: skip


def test_clears_doubts_and_missing_prices(tmp_path: Path) -> None:
    file = File("mbo").mbo("A", "B", 1, 100.25, 5).tick_on().mbo("A", "A", 2, UNDEF, 5).tick_on()
    file.mbo("T", "N", 0, UNDEF, 5, 0).mbo("A", "A", 3, 100.5, 5, LAST | MAYBE_BAD).tick_on()
    file.mbo("R", "N", 0, UNDEF, 0)
    [source] = opened(file.save(tmp_path))
    rows = rows_of(source)
    assert told(rows) == ["ADD +1 401x5 #1|", "ADD -1 402x5 #3|", "CLEAR +0 0x0 #0|"]
    assert source.counts["records without a price"] == 2
    assert source.counts["rows of a book that may be bad"] == 1
    assert rows["flags"][-2] & Flag.UNCERTAIN


def test_the_end_of_a_packet_passes_to_its_last_row(tmp_path: Path) -> None:
    file = File("mbo").mbo("A", "B", 1, 100.25, 5, 0).mbo("N", "N", 0, UNDEF, 0, LAST).tick_on()
    file.mbo("A", "B", 2, 100.25, 5)
    [source] = opened(file.save(tmp_path))
    assert told(rows_of(source)) == ["ADD +1 401x5 #1|", "ADD +1 401x5 #2|"]


def test_levels_are_what_changed(tmp_path: Path) -> None:
    asks = [(100.5, 3)]
    file = File("mbp-1").mbp("A", "B", 100.0, 5, [(100.0, 5)], asks).tick_on()
    file.mbp("T", "B", 100.5, 2, [(100.0, 5)], asks, 0)
    file.mbp("C", "A", 100.5, 2, [(100.0, 5)], [(100.5, 1)]).tick_on()
    file.mbp("A", "B", 100.25, 7, [(100.25, 7)], [(100.5, 1)]).tick_on()
    file.mbp("C", "A", 100.5, 1, [(100.25, 7)], [])
    [source] = opened(file.save(tmp_path))
    assert told(rows_of(source)) == [
        "SNAPSHOT_BEGIN +0 0x0 #0",
        "LEVEL +1 400x5 #0",
        "LEVEL -1 402x3 #0",
        "SNAPSHOT_END +0 0x0 #0|",
        "TRADE +1 402x2 #0",
        "LEVEL -1 402x1 #0|",
        "LEVEL +1 400x0 #0",
        "LEVEL +1 401x7 #0|",
        "LEVEL -1 402x0 #0|",
    ]
    assert "levels beyond the first" in source.cannot_tell[1]


@pytest.mark.parametrize("block", [1 << 21, 4_000])
def test_ten_levels_are_followed_in_and_out_of_view(
    tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hft.adapters.databento.records.BLOCK_BYTES", block)
    rng, file = random.Random(2), File("mbp-10")
    book: dict[str, dict[int, int]] = {"B": {}, "A": {}}
    shown: list[list[tuple[int, int]]] = []
    for _ in range(300):
        side = rng.choice("BA")
        price = 400 - rng.randint(0, 15) if side == "B" else 401 + rng.randint(0, 15)
        size = rng.choice((0, 1, 5, 9))
        action = "A" if size else "C"
        book[side].pop(price, None) if not size else book[side].update({price: size})
        if rng.random() < 0.01:
            book, action = {"B": {}, "A": {}}, "R"
        bids, asks = sorted(book["B"].items())[::-1][:10], sorted(book["A"].items())[:10]
        quarters = [[(p / 4, n) for p, n in levels] for levels in (bids, asks)]
        file.mbp(action, side, price / 4, max(size, 1), *quarters).tick_on()
        shown.append([*bids, *asks])
    [source] = opened(file.save(tmp_path), tick=0.25)
    rows = rows_of(source)
    assert "CLEAR" in {Kind(k).name for k in rows["kind"]}
    stream, record = BookStream(), (rows["ts_event"] - T0) // 1_000
    for number, levels in enumerate(shown):
        stream.feed(rows[record == number])
        have = [(p, n) for side in (1, -1) for p, n, _ in stream.levels(side, 20).tolist()]
        assert have == levels


def test_tbbo_shows_the_book_before_each_trade(tmp_path: Path) -> None:
    file = File("tbbo").mbp("T", "A", 100.0, 2, [(100.0, 5)], [(100.5, 3)], 0).tick_on()
    file.mbp("T", "A", 100.0, 1, [(100.0, 3)], [(100.5, 3)], 0)
    [source] = opened(file.save(tmp_path))
    assert told(rows_of(source))[-3:] == [
        "TRADE -1 200x2 #0|", "LEVEL +1 200x3 #0", "TRADE -1 200x1 #0|",
    ]  # fmt: skip


def test_trades_alone_round_to_a_given_tick(tmp_path: Path) -> None:
    file = File("trades").trade("B", 100.25, 2).tick_on().trade("N", 100.305, 1)
    path = file.save(tmp_path)
    [source] = opened(path, tick=0.25, lot=1.0)
    assert told(rows_of(source)) == ["TRADE +1 401x2 #0|", "TRADE +0 401x1 #0|"]
    assert source.counts["prints rounded"] == 1
    assert opened(path)[0].spec.tick == 0.005


def test_a_book_price_off_the_tick_is_refused(tmp_path: Path) -> None:
    [source] = opened(book_file().save(tmp_path), tick=0.5)
    with pytest.raises(DataError, match=r"x.dbn: record 1: price 100.25 is off the tick.*be given"):
        rows_of(source)


def test_sizes_are_contracts_whatever_lot_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"lot 5; .* want lot 1"):
        opened(book_file().save(tmp_path), lot=5.0)


def test_prices_of_spreads_may_be_below_zero(tmp_path: Path) -> None:
    file = File("mbo").mbo("A", "B", 1, -0.25, 3).mbo("A", "A", 2, 0.0, 4)
    (source,) = opened(file.save(tmp_path), tick=0.25, negative_price=True)
    done = import_source(source, Store(tmp_path / "store"))
    rows = Store(tmp_path / "store").read(done.spec.name)
    assert rows["price"][rows["kind"] == Kind.ADD].tolist() == [-1, 0]


def test_records_of_other_kinds_may_stand_between(tmp_path: Path) -> None:
    file = File("mbo").map("ABCH4", 7, date(2024, 1, 9), date(2024, 1, 12))
    file.record("SystemMsg", rtype=23).mbo("A", "B", 1, 100.25, 5).tick_on()
    file.record("SymbolMappingMsg", rtype=22, instrument_id=8, stype_out_symbol="XYZH4")
    file.mbo("A", "A", 2, 10.5, 5, instrument_id=8).define(0.05, 5.0).tick_on()
    file.mbo("C", "B", 1, 100.25, 5)
    sources = {s.spec.symbol: s for s in opened(file.save(tmp_path))}
    assert sources.keys() == {"ABCH4", "XYZH4"}
    assert told(rows_of(sources["ABCH4"])) == ["ADD +1 2005x5 #1|", "CANCEL +1 2005x5 #1|"]
    assert told(rows_of(sources["XYZH4"])) == ["ADD -1 21x5 #2|"]
    assert (sources["ABCH4"].spec.tick, sources["ABCH4"].spec.multiplier) == (0.05, 100.0)
    assert sources["ABCH4"].spec.currency == "USD"
    assert [s.spec.symbol for s in opened(tmp_path / "x.dbn", symbol="XYZH4")] == ["XYZH4"]
    with pytest.raises(ConfigError, match="no symbol ES; there are ABCH4, XYZH4"):
        opened(tmp_path / "x.dbn", symbol="ES,ABCH4")


def test_of_several_schemas_the_fullest_is_read(tmp_path: Path) -> None:
    file = File("mbo").mbo("A", "B", 1, 100.25, 5).tick_on().trade("B", 100.5, 1)
    [source] = opened(file.save(tmp_path))
    assert told(rows_of(source)) == ["ADD +1 401x5 #1|"]
    assert source.counts["records of other schemas left out"] == 1


def test_an_id_stands_for_another_symbol_each_day(tmp_path: Path) -> None:
    day_ns = 86_400_000_000_000
    file = File("mbo").map("ABC", 7, date(2024, 1, 10), date(2024, 1, 11))
    file.map("XYZ", 7, date(2024, 1, 11), date(2024, 1, 12))
    file.mbo("A", "B", 1, 100.25, 5).tick_on(day_ns).mbo("A", "B", 2, 50.5, 5)
    sources = {s.spec.symbol: rows_of(s) for s in opened(file.save(tmp_path), tick=0.25)}
    assert told(sources["ABC"]) == ["ADD +1 401x5 #1|"]
    assert told(sources["XYZ"]) == ["ADD +1 202x5 #2|"]


def test_definitions_of_another_file_are_used(tmp_path: Path) -> None:
    book = book_file().save(tmp_path, "book.dbn.zst")
    facts = File("definition", 1).define(0.125, 6.25).save(tmp_path, "facts.dbn")
    [source] = opened(book, facts)
    assert (source.spec.symbol, source.spec.tick, source.spec.multiplier) == ("ABC", 0.125, 50.0)
    assert source.inferred == ["trading hours of Globex"]
    with pytest.raises(DataError, match="neither book nor prints; there are records of 1 def"):
        opened(facts)


def test_states_of_status_records(tmp_path: Path) -> None:
    file = File("mbo").status(1).tick_on().mbo("A", "B", 1, 100.25, 5).tick_on().status(7)
    file.tick_on().mbo("A", "A", 2, 100.5, 5).tick_on().status(14).status(9)
    [source] = opened(file.save(tmp_path))
    rows = rows_of(source)
    states = [
        Trading(r["ref_id"]).name if r["kind"] == Kind.STATUS else Kind(r["kind"]).name
        for r in rows
    ]
    assert states == ["AUCTION", "ADD", "OPEN", "ADD", "HALT"]
    assert not (rows["flags"] & Flag.UNCERTAIN).any()
    assert not source.inferred[1:]


def test_hours_of_globex_are_assumed(tmp_path: Path) -> None:
    begins = 1_704_466_800_000_000_000  # Friday 2024-01-05 09:00 in Chicago
    hour = 3_600_000_000_000
    changes = globex(begins, begins + 96 * hour)
    assert [(c.state.name, (c.ts_event - begins) // hour) for c in changes] == [
        ("OPEN", 0), ("CLOSED", 7), ("AUCTION", 55), ("OPEN", 56), ("AUCTION", 79), ("OPEN", 80),
    ]  # fmt: skip
    file = File("mbo").mbo("A", "B", 1, 100.25, 5).tick_on(22 * hour).mbo("A", "A", 2, 100.0, 5)
    rows = rows_of(opened(file.tick_on(hour).mbo("C", "A", 2, 100.0, 5).save(tmp_path))[0])
    stream = BookStream()
    touch = stream.feed(rows)
    crossed = (touch["bid"] >= touch["ask"]) & (touch["ask"] != NO_PRICE)
    assert crossed.any()
    assert set(touch["trading"][crossed]) == {Trading.AUCTION}
    assert stream.trading == Trading.OPEN
    elsewhere = book_file()
    elsewhere.dataset = "XNAS.ITCH"
    assert Kind.STATUS not in rows_of(opened(elsewhere.save(tmp_path))[0])["kind"]


def test_rows_do_not_depend_on_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = File("mbo")
    for order in range(1, 200):
        flags = SNAPSHOT if order % 50 < 9 else LAST * (order % 3 == 0)
        file.mbo("A", "B", order, 100 + order % 7 / 4, 5, flags).tick_on()
        if order % 40 == 0:
            file.record("SystemMsg", rtype=23)
    path = file.save(tmp_path, "x.dbn.zst")
    whole = rows_of(opened(path)[0])
    monkeypatch.setattr("hft.adapters.databento.records.BLOCK_BYTES", 150)
    assert (rows_of(opened(path)[0]) == whole).all()


@pytest.mark.parametrize("name", ["x.dbn", "x.dbn.zst"])
def test_a_cut_file_is_refused_or_taken_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    file = File("mbo")
    for order in range(1, 200):
        file.mbo("A", "B", order, 100.25, 5).tick_on()
    path = file.save(tmp_path, name)
    whole, raw = rows_of(opened(path)[0]), path.read_bytes()
    path.write_bytes(raw[: len(raw) * 2 // 3 + 1])
    with pytest.raises(DataError, match=rf"{name}: damaged: "):
        opened(path)
    [source] = opened(path, repair=True)
    rows = rows_of(source)
    assert source.counts["files damaged at the end"] == 1
    assert 50 < len(rows) < len(whole)
    assert (rows == whole[: len(rows)]).all()


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "x.dbn"
    for content, error, why in (
        (b"", SchemaError, "want 'DBN'"),
        (b"P*M\x18" + bytes(99), SchemaError, "format before DBN"),
        (bytes(book_file().out), SchemaError, "a fragment"),
        (book_file().data()[:60], DataError, "the DBN header is cut"),
        (b"DBN\x09" + bytes(200), DataError, "damaged DBN header"),
    ):
        path.write_bytes(content)
        with pytest.raises(error, match=why) as refusal:
            opened(path)
        assert path.name in str(refusal.value)
    with pytest.raises(DataError, match="no such file"):
        opened(tmp_path / "missing.dbn")


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = book_file().save(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "databento_dbn", None)
    with pytest.raises(ConfigError, match=r"pip install 'hft-framework\[databento\]'"):
        opened(path)


def test_damaged_files_give_typed_errors_or_rows(tmp_path: Path) -> None:
    rng = random.Random(4)
    levels = File("mbp-1").mbp("A", "B", 100.0, 5, [(100.0, 5)], [(100.5, 3)])
    raws = [book_file().data(), levels.data(), book_file().save(tmp_path, "y.dbn.zst").read_bytes()]
    path = tmp_path / "x.dbn"
    for _ in range(ROUNDS):
        data = bytearray(rng.choice(raws))
        for _ in range(rng.choice((0, 1, 3, 20))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
        for repair in (False, True):
            with suppress(HftError):
                for source in open_sources("databento", [path], repair=repair):
                    import_source(source, Store(tmp_path / "s"), repair=repair, overwrite=True)


# Real files.


def real(data_dir: Path, name: str) -> Path:
    path = data_dir / "dbn" / name
    if not path.exists():
        pytest.skip(f"no {path}")
    return path


def test_a_day_of_es_futures(data_dir: Path, tmp_path: Path) -> None:
    [source] = opened(real(data_dir, "esh4-glbx-mdp3-20231225.mbo.dbn.zst"))
    rows = rows_of(source)
    assert source.counts | {"records": 68_792, "snapshot records": 8_725} == source.counts
    expected = {"adds": 29_216, "cancels": 17_999, "modifies": 12_233, "fills": 6_371}
    assert source.counts | expected | {"trades": 2_973} == source.counts
    assert source.inferred == ["tick 0.25", "trading hours of Globex"]
    stream = BookStream()
    touch = stream.feed(rows)
    assert stream.levels(1, 1).tolist() == [[19_240, 22, 22]]  # 4810.00 x 22
    assert stream.levels(-1, 1).tolist() == [[19_241, 28, 18]]  # 4810.25 x 28
    assert stream.live_orders == 11_217
    crossed = (touch["bid"] > touch["ask"]) & (touch["ask"] != NO_PRICE)
    assert crossed.sum() == 891
    assert set(touch["trading"][crossed]) == {Trading.AUCTION}
    assert import_source(source, Store(tmp_path / "s")).rows == len(rows)
    assert not any(stream.faults.values())


def test_the_snapshot_of_a_day_without_trading(data_dir: Path) -> None:
    [source] = opened(real(data_dir, "esh4-glbx-mdp3-20231224.mbo.dbn.zst"))
    kinds = Counter(Kind(kind) for kind in rows_of(source)["kind"])
    assert kinds[Kind.ADD] == 8_725
    assert kinds[Kind.SNAPSHOT_BEGIN] == kinds[Kind.SNAPSHOT_END] == 1


def test_real_quotes_lead_to_the_touch_that_they_show(data_dir: Path) -> None:
    path = real(data_dir, "futures_mbp-1_2024-07-01T23-58_2024-07-02T00-02.dbn.zst")
    [source] = opened(path)
    stream = BookStream()
    touch = stream.feed(rows_of(source))
    decoder = dbn.DBNDecoder(compression=dbn.Compression.ZSTD)
    decoder.write(path.read_bytes())
    ends = [r for r in decoder.decode()[1:] if r.flags & LAST]
    shown = {(r.ts_event, r.ts_recv): r.levels[0] for r in ends}
    for row in touch[touch["trading"] == Trading.OPEN]:
        best = shown.get((int(row["ts_event"]), int(row["ts_recv"])))
        if best:
            assert (row["bid"] * UNIT // 4, row["bid_lots"]) == (best.bid_px, best.bid_sz)
            assert (row["ask"] * UNIT // 4, row["ask_lots"]) == (best.ask_px, best.ask_sz)


def test_every_format_file_gives_rows_or_says_why_not(data_dir: Path) -> None:
    outcomes: Counter[str] = Counter()
    for path in sorted(real(data_dir, "format").iterdir()):
        facts = {"tick": 1.0} if ".status." in path.name else {}
        try:
            [source] = opened(path, **facts)
            outcomes["rows"] += len(rows_of(source)) > 0
        except DataError as error:
            outcomes[type(error).__name__] += path.name in str(error)
    # Books, prints and states; fragments and .dbz; definitions and imbalances.
    assert outcomes == {"rows": 24, "SchemaError": 12, "DataError": 8}
