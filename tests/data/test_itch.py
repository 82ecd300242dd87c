"""ITCH files: an encoder, the book it means, Nasdaq's own bytes, and damage."""

from __future__ import annotations

import gzip
import random
import struct
from collections import Counter
from contextlib import suppress
from datetime import date
from pathlib import Path

import hypothesis
import numpy as np
import pytest

from hft.adapters.itch import ItchFile, date_of
from hft.data import Store, check, import_source
from hft.data.books import BookStream
from hft.data.sources import open_sources
from hft.errors import ConfigError, DataError, HftError
from hft.types import EVENT, Flag, Kind, Trading

DAY = "2020-01-30"
MIDNIGHT = 1_580_360_400_000_000_000  # 05:00 UTC
OPENS_NS = 34_200_000_000_000  # 09:30
ROUNDS = 2 * hypothesis.settings().max_examples // 5


class Encoder:
    """Writes messages field by field as Nasdaq's specification has them."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.messages = 0
        self._match = 0

    def put(self, body: bytes) -> None:
        self.out += struct.pack(">H", len(body)) + body
        self.messages += 1

    def _head(self, kind: str, locate: int, ns: int) -> bytes:
        return struct.pack(">cHH", kind.encode(), locate, 0) + ns.to_bytes(6, "big")

    def match(self) -> int:
        self._match += 1
        return self._match

    def system(self, ns: int, code: str) -> None:
        self.put(self._head("S", 0, ns) + code.encode())

    def directory(self, ns: int, locate: int, stock: str) -> None:
        body = struct.pack(
            ">8sccIcc2scccccIc",
            _text(stock),
            b"Q",
            b"N",
            100,
            b"N",
            b"C",
            b"Z ",
            b"P",
            b"N",
            b"N",
            b"1",
            b"N",
            0,
            b"N",
        )
        self.put(self._head("R", locate, ns) + body)

    def action(self, ns: int, locate: int, stock: str, state: str) -> None:
        body = struct.pack(">8scc4s", _text(stock), state.encode(), b" ", b"    ")
        self.put(self._head("H", locate, ns) + body)

    def add(
        self, ns: int, locate: int, ref: int, side: int, shares: int, stock: str, price: int,
        mpid: str = "",
    ) -> None:  # fmt: skip
        letter = b"B" if side > 0 else b"S"
        body = struct.pack(">QcI8sI", ref, letter, shares, _text(stock), price)
        kind = "F" if mpid else "A"
        self.put(self._head(kind, locate, ns) + body + (mpid.encode() if mpid else b""))

    def execute(self, ns: int, locate: int, ref: int, shares: int) -> None:
        self.put(self._head("E", locate, ns) + struct.pack(">QIQ", ref, shares, self.match()))

    def execute_at(
        self, ns: int, locate: int, ref: int, shares: int, price: int, *, printable: bool
    ) -> None:
        letter = b"Y" if printable else b"N"
        body = struct.pack(">QIQcI", ref, shares, self.match(), letter, price)
        self.put(self._head("C", locate, ns) + body)

    def cancel(self, ns: int, locate: int, ref: int, shares: int) -> None:
        self.put(self._head("X", locate, ns) + struct.pack(">QI", ref, shares))

    def delete(self, ns: int, locate: int, ref: int) -> None:
        self.put(self._head("D", locate, ns) + struct.pack(">Q", ref))

    def replace(self, ns: int, locate: int, ref: int, new: int, shares: int, price: int) -> None:
        self.put(self._head("U", locate, ns) + struct.pack(">QQII", ref, new, shares, price))

    def hidden(self, ns: int, locate: int, shares: int, stock: str, price: int) -> None:
        body = struct.pack(">QcI8sIQ", 0, b"B", shares, _text(stock), price, self.match())
        self.put(self._head("P", locate, ns) + body)

    def cross(self, ns: int, locate: int, shares: int, stock: str, price: int) -> None:
        body = struct.pack(">Q8sIQc", shares, _text(stock), price, self.match(), b"O")
        self.put(self._head("Q", locate, ns) + body)

    def begin(self, stocks: list[str]) -> None:
        """The start of a day: directory, trading actions, system and market hours."""
        self.system(1, "O")
        for at, stock in enumerate(stocks):
            self.directory(2, at + 1, stock)
        for at, stock in enumerate(stocks):
            self.action(3, at + 1, stock, "T")
        self.system(4, "S")
        self.system(OPENS_NS, "Q")

    def save(self, path: Path) -> Path:
        packed = path.suffix == ".gz"
        path.write_bytes(gzip.compress(bytes(self.out), 1) if packed else bytes(self.out))
        return path


def _text(stock: str) -> bytes:
    return stock.ljust(8).encode()


class Flow:
    """Random orders of two stocks, told by an encoder, and the book they lead to."""

    STOCKS = ("ABCD", "WXYZ")

    def __init__(self, seed: int) -> None:
        self.tell = Encoder()
        self.tell.begin(list(self.STOCKS))
        self.orders: dict[int, list[int]] = {}  # ref: locate, side, price, shares; in queue order
        self.traded: Counter[int] = Counter()
        self.kinds: Counter[Kind] = Counter()  # of the first stock
        self._rng = random.Random(seed)
        self._ns = OPENS_NS
        self._ref = 0

    def run(self, steps: int) -> Flow:
        for _ in range(steps):
            self._ns += self._rng.choice((0, 1, 700, 90_000))
            step = self._rng.choice((self._add, self._add, self._reduce, self._move, self._other))
            step()
        return self

    def _new_ref(self) -> int:
        self._ref += self._rng.randint(1, 3)
        return self._ref

    def _price(self, side: int) -> int:
        return 100 * (5_000 - side * self._rng.randint(1, 30))

    def _count(self, locate: int, kind: Kind) -> None:
        self.kinds[kind] += locate == 1

    def _add(self) -> None:
        locate, side = self._rng.randint(1, 2), self._rng.choice((1, -1))
        price, shares, ref = self._price(side), self._rng.randint(1, 900), self._new_ref()
        stock, mpid = self.STOCKS[locate - 1], self._rng.choice(("", "FLTU"))
        self.tell.add(self._ns, locate, ref, side, shares, stock, price, mpid)
        self.orders[ref] = [locate, side, price, shares]
        self._count(locate, Kind.ADD)

    def _reduce(self) -> None:
        if not self.orders:
            return
        ref = self._rng.choice(list(self.orders))
        locate, _, price, shares = self.orders[ref]
        some = self._rng.randint(1, shares)
        how = self._rng.randrange(5)
        if how == 0:
            self.tell.execute(self._ns, locate, ref, some)
        elif how in (1, 2):
            printable = how == 1
            self.tell.execute_at(self._ns, locate, ref, some, price + 100, printable=printable)
        elif how == 3:
            self.tell.cancel(self._ns, locate, ref, some)
        else:
            self.tell.delete(self._ns, locate, ref)
            some = shares
        self._count(locate, Kind.EXECUTE if how < 3 else Kind.CANCEL)
        self.traded[locate] += some if how < 2 else 0
        self.orders[ref][3] -= some
        if not self.orders[ref][3]:
            del self.orders[ref]

    def _move(self) -> None:
        if not self.orders:
            return
        ref = self._rng.choice(list(self.orders))
        locate, side, *_ = self.orders.pop(ref)
        new, price, shares = self._new_ref(), self._price(side), self._rng.randint(1, 900)
        self.tell.replace(self._ns, locate, ref, new, shares, price)
        self.orders[new] = [locate, side, price, shares]
        self._count(locate, Kind.REPLACE)

    def _other(self) -> None:
        locate, shares = self._rng.randint(1, 2), self._rng.choice((0, 7, 100))
        stock = self.STOCKS[locate - 1]
        if shares == 7:
            self.tell.hidden(self._ns, locate, shares, stock, 500_050)  # half a cent
        else:
            self.tell.cross(self._ns, locate, shares, stock, 500_000)
        self.traded[locate] += shares
        self._count(locate, Kind.TRADE) if shares else None

    def queue(self, locate: int, side: int, price: int) -> list[list[int]]:
        return [
            [ref, shares]
            for ref, (where, way, at, shares) in self.orders.items()
            if (where, way, at) == (locate, side, price)
        ]


def rows_of(source: ItchFile) -> np.ndarray:
    return np.concatenate([batch.events.copy() for batch in source.batches()])


def opened(path: Path, *, repair: bool = False, **facts: object) -> list[ItchFile]:
    return open_sources("itch", [path], facts=facts, repair=repair)  # type: ignore[return-value]


def printed(rows: np.ndarray) -> int:
    prints = np.isin(rows["kind"], (Kind.TRADE, Kind.EXECUTE))
    return int(rows["qty"][prints & (rows["flags"] & Flag.NO_PRINT == 0)].sum())


@pytest.mark.parametrize("suffix", ["itch", "itch.gz"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_book_that_was_written_is_rebuilt(tmp_path: Path, suffix: str, seed: int) -> None:
    flow = Flow(seed).run(4_000)
    path = flow.tell.save(tmp_path / f"{DAY}.{suffix}")
    for locate, source in enumerate(opened(path), 1):
        rows = rows_of(source)
        check(rows, source.spec).require()
        book = BookStream()
        book.feed(rows)
        assert not any(book.faults.values())
        assert book.live_orders == sum(order[0] == locate for order in flow.orders.values())
        for side in (1, -1):
            levels = book.levels(side, 100)
            assert len(levels)
            for price, lots, orders in levels.tolist():
                queue = flow.queue(locate, side, price * 100)
                assert book.queue(side, price).tolist() == queue
                assert (lots, orders) == (sum(n for _, n in queue), len(queue))
        assert printed(rows) == flow.traded[locate]
        assert source.counts["messages"] == flow.tell.messages
        if locate == 1:
            found = Counter(Kind(kind) for kind in rows["kind"])
            del found[Kind.STATUS]
            assert found == flow.kinds


def test_rows_do_not_depend_on_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Flow(5).run(2_000).tell.save(tmp_path / f"{DAY}.itch")
    whole = rows_of(opened(path, symbol="WXYZ")[0])
    monkeypatch.setattr("hft.adapters.itch.PIECE_BYTES", 61)
    monkeypatch.setattr("hft.adapters.itch.BATCH_ROWS", 100)
    assert (rows_of(opened(path, symbol="WXYZ")[0]) == whole).all()


def test_rows_of_one_time_are_one_packet(tmp_path: Path) -> None:
    rows = rows_of(opened(Flow(6).run(500).tell.save(tmp_path / f"{DAY}.itch"))[0])
    last = rows["flags"] & Flag.LAST != 0
    assert (last[:-1] == (np.diff(rows["ts_event"]) != 0)).all()
    assert last[-1]
    assert rows["ts_event"][0] == MIDNIGHT + 1
    assert (rows["ts_recv"] == rows["ts_event"]).all()


def test_states_follow_system_hours_and_trading_actions(tmp_path: Path) -> None:
    tell = Encoder()
    tell.begin(["ABCD"])
    for ns, state in ((1, "P"), (2, "Q"), (3, "T")):
        tell.action(OPENS_NS + ns, 1, "ABCD", state)
    tell.system(OPENS_NS + 4, "M")
    tell.system(OPENS_NS + 5, "E")
    rows = rows_of(opened(tell.save(tmp_path / f"{DAY}.itch"))[0])
    assert set(rows["kind"]) == {Kind.STATUS}
    assert [Trading(state).name for state in rows["ref_id"]] == [
        "CLOSED", "CLOSED", "OPEN", "OPEN", "HALT", "AUCTION", "OPEN", "OPEN", "CLOSED",
    ]  # fmt: skip


def test_orders_that_were_never_added_are_counted_and_passed_on(tmp_path: Path) -> None:
    tell = Encoder()
    tell.begin(["ABCD"])
    tell.execute(OPENS_NS, 1, 9, 100)
    tell.execute_at(OPENS_NS, 1, 9, 100, 500_000, printable=True)
    tell.replace(OPENS_NS, 1, 9, 10, 100, 500_000)
    source = opened(tell.save(tmp_path / f"{DAY}.itch"))[0]
    rows = rows_of(source)
    assert source.counts["messages on unknown orders"] == 3
    assert [Kind(k).name for k in rows["kind"][-3:]] == ["CANCEL", "TRADE", "CANCEL"]
    book = BookStream()
    book.feed(rows)
    assert book.faults["unknown_id"] == 2


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("01302020.NASDAQ_ITCH50.gz", date(2020, 1, 30)),
        ("20200130.BX_ITCH_50.gz", date(2020, 1, 30)),
        ("S013020-v50.txt.gz", date(2020, 1, 30)),
        ("itch_2020-01-30_AAPL.bin", date(2020, 1, 30)),
    ],
)
def test_the_day_is_read_from_the_name(name: str, day: date) -> None:
    assert date_of(Path(name)) == day


@pytest.mark.parametrize("name", ["sample.itch", "99999999.itch", "2020-02-31.itch", "itch50.bin"])
def test_a_name_without_a_day_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="give --date YYYY-MM-DD, or a name"):
        date_of(Path(name))


def test_a_day_that_is_given_wins_over_the_name(tmp_path: Path) -> None:
    tell = Encoder()
    tell.begin(["ABCD"])
    for name in ("sample.itch", "2020-01-30.itch"):
        path = tell.save(tmp_path / name)
        (source,) = open_sources("itch", [path], date=date(2019, 7, 1), facts={"symbol": "ABCD"})
        assert rows_of(source)["ts_event"][0] == 1_561_953_600_000_000_001


def test_midnight_is_new_york_s_in_summer_too(tmp_path: Path) -> None:
    tell = Encoder()
    tell.begin(["ABCD"])
    rows = rows_of(opened(tell.save(tmp_path / "2019-07-01.itch"))[0])
    assert rows["ts_event"][0] == 1_561_953_600_000_000_001  # 04:00 UTC


def test_symbols_that_are_asked_for(tmp_path: Path) -> None:
    path = Flow(7).run(100).tell.save(tmp_path / f"{DAY}.itch")
    assert [s.spec.symbol for s in opened(path)] == ["ABCD", "WXYZ"]
    assert [s.spec.symbol for s in opened(path, symbol="WXYZ")] == ["WXYZ"]
    with pytest.raises(ConfigError, match="no symbol AAPL among 2, such as ABCD, WXYZ"):
        opened(path, symbol="WXYZ,AAPL")


def test_a_price_below_a_dollar_needs_a_finer_tick(tmp_path: Path) -> None:
    tell = Encoder()
    tell.begin(["ABCD"])
    tell.add(OPENS_NS, 1, 9, 1, 100, "ABCD", 5_021)
    path = tell.save(tmp_path / f"{DAY}.itch")
    with pytest.raises(DataError, match=r"message 6 at byte \d+: price 0.5021 .*0.0001"):
        rows_of(opened(path)[0])
    assert rows_of(opened(path, tick=0.0001)[0])["price"][-1] == 5_021
    with pytest.raises(ConfigError, match="want a tick that is a multiple of it"):
        opened(path, tick=0.00005)


def broken(what: str) -> Encoder:
    tell = Encoder()
    tell.begin(["ABCD"])
    tell.add(OPENS_NS, 1, 9, 1, 100, "ABCD", 500_000)
    if what == "type":
        tell.put(b"Z" + bytes(30))
    elif what == "length":
        tell.put(b"A" + bytes(30))
    elif what == "cut":
        tell.out += b"\x00\x24A"
    tell.delete(OPENS_NS + 1, 1, 9) if what != "cut" else None
    return tell


@pytest.mark.parametrize(
    ("what", "message", "counted"),
    [
        ("type", r"message 7 at byte \d+: message type 'Z' is none of ITCH 5.0",
         "messages unreadable"),
        ("length", "message 'A' has 31 bytes, want at least 36", "messages unreadable"),
        ("cut", r"the message at byte \d+ is cut", "files damaged at the end"),
    ],
)  # fmt: skip
def test_damage_is_refused_or_counted(
    tmp_path: Path, what: str, message: str, counted: str
) -> None:
    path = broken(what).save(tmp_path / f"{DAY}.itch")
    with pytest.raises(DataError, match=message) as refusal:
        rows_of(opened(path, symbol="ABCD")[0])
    assert path.name in str(refusal.value)
    source = opened(path, symbol="ABCD", repair=True)[0]
    rows = rows_of(source)
    assert source.counts[counted] == 1
    assert Kind.ADD in rows["kind"]
    assert (Kind.CANCEL in rows["kind"]) == (what != "cut")


def test_a_cut_gzip_is_refused_or_taken_as_far_as_it_goes(tmp_path: Path) -> None:
    path = Flow(8).run(3_000).tell.save(tmp_path / f"{DAY}.itch.gz")
    whole = rows_of(opened(path, symbol="ABCD")[0])
    path.write_bytes(path.read_bytes()[:-20_000])
    with pytest.raises(DataError, match="damaged after byte"):
        rows_of(opened(path, symbol="ABCD")[0])
    source = opened(path, symbol="ABCD", repair=True)[0]
    part = rows_of(source)
    assert 0 < len(part) < len(whole)
    assert source.counts["files damaged at the end"] == 1
    assert (part[:-1] == whole[: len(part) - 1]).all()


def test_what_is_no_itch_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / f"{DAY}.itch"
    for content in (b"", b"time,price\n" * 99, bytes(500)):
        path.write_bytes(content)
        with pytest.raises(DataError, match=path.name):
            opened(path)
    with pytest.raises(DataError, match="no such file"):
        opened(tmp_path / f"missing-{DAY}.itch")


def test_damaged_files_give_typed_errors_or_rows(tmp_path: Path) -> None:
    rng, path = random.Random(4), tmp_path / f"{DAY}.itch"
    raw = bytes(Flow(9).run(60).tell.out)
    for _ in range(ROUNDS):
        data = bytearray(raw)
        for _ in range(rng.choice((0, 1, 3, 20))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data[: rng.choice((len(data), rng.randrange(len(data))))])
        for repair in (False, True):
            with suppress(HftError):
                for source in open_sources("itch", [path], repair=repair):
                    import_source(source, Store(tmp_path / "s"), repair=repair, overwrite=True)


def test_nasdaq_s_own_bytes(tmp_path: Path, data_dir: Path) -> None:
    real = data_dir / "us_l3" / "nasdaq_itch50_first1000.itch"
    if not real.is_file():
        pytest.skip(f"no {real}")
    path = tmp_path / f"{DAY}.itch"
    path.symlink_to(real)
    sources = opened(path)
    assert [s.spec.symbol for s in sources] == ["A", "AA", "AAAU"]  # the rest is but listed
    for source in sources:
        rows = rows_of(source)
        assert source.counts["messages"] == 1000
        assert rows.dtype == EVENT
        assert [Trading(state).name for state in rows["ref_id"]] == ["CLOSED", "CLOSED"]
        assert rows["ts_event"][0] == MIDNIGHT + 11_072_057_543_747  # 03:04:32.057543747
