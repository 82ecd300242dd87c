"""Raw captures of Binance, spot and USD-M: `<local time> {json}` a line, plain or gzip.

Read are depth diffs, trades (`trade`, else `aggTrade`) and the REST depth snapshot; other messages
are counted and left out. The local time is in us or ns, told by its size.

**Book.** Diffs wait for a snapshot with `lastUpdateId` L. Spot: those with `u <= L` are dropped,
the first kept one needs `U <= L + 1 <= u`, and then each `U` is the previous `u + 1`. USD-M:
dropped with `u < L`, first `U <= L <= u`, and then each `pu` is the previous `u` (its `U` is
normally not `pu + 1`). A diff that does not chain gives a STATUS row GAP; the book is down until
the next snapshot.

**Clock of the venue.** `T` where there is one, else `E`. Trades and diffs are sent by different
machines and interleave in another order than they happened, so the importing splits late rows by
side (hft/data/reorder.py). A spot snapshot has no time: it gets that of the diff before it.
"""

from __future__ import annotations

import gzip
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, Flag, InstrumentSpec, Kind, Trading

BATCH = 1 << 18  # rows
SAMPLE = 20_000  # lines looked at to infer symbol, market, tick and lot
UNTIMED = 0  # venue time of a spot snapshot that opens a capture
KEPT_DIFFS = 4096  # diffs that wait for a snapshot; a REST snapshot is a few seconds away

Levels = list[tuple[str, str]]
_DAMAGE = (OSError, EOFError, zlib.error)


class Message(msgspec.Struct):
    """Any message read here; `data` if it came wrapped as `{stream, data}`."""

    data: Message | None = None
    e: str = ""
    E: int = 0
    T: int = 0
    s: str = ""
    U: int = 0
    u: int = 0
    pu: int | None = None
    b: Levels | str | int = 0
    a: Levels | str | int = 0
    p: str = ""
    q: str = ""
    m: bool = False
    t: int = 0
    X: str = "MARKET"
    lastUpdateId: int = 0
    bids: Levels = []
    asks: Levels = []


class _Name(msgspec.Struct):
    data: _Name | None = None
    e: str = ""


class Line(NamedTuple):
    """One decoded line."""

    number: int
    ts_recv: int
    message: Message
    done: float


class Diff(NamedTuple):
    """One depth diff, until it is applied or dropped."""

    line: int
    ts_event: int
    ts_recv: int
    first: int
    last: int
    before: int | None
    bids: Levels
    asks: Levels


class BinanceCapture:
    """Captures of one symbol, in the order given, as one source of EVENT rows.

    Args:
        paths: capture files that follow each other.
        symbol: which one, if there are several; default: the first met.
        venue: default: BINANCE or BINANCE_USDM.
        tick: smallest price step; default: from the decimals of the first SAMPLE lines.
        lot: smallest quantity step; likewise.
        repair: leave out lines that cannot be read, round prints off the tick, and take trades
            alone from a capture without a snapshot; all counted.
        facts: further fields of InstrumentSpec.
    """

    reorders = True

    def __init__(
        self,
        *paths: str | Path,
        symbol: str = "",
        venue: str = "",
        tick: float | None = None,
        lot: float | None = None,
        repair: bool = False,
        **facts: Any,
    ) -> None:
        self._paths = [Path(path) for path in paths]
        self.name = " ".join(str(path) for path in paths)
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._repair = repair
        for path in self._paths:
            if not path.is_file():
                raise DataError(f"{path}: no such file")
        sample = _Sample(line.message for line in islice(self._lines(), SAMPLE))
        self._trade_event = "trade" if sample.has_trade else "aggTrade"
        self.spec = InstrumentSpec(
            symbol=symbol or self._infer("symbol", sample.symbol),
            venue=venue or ("BINANCE_USDM" if sample.futures else "BINANCE"),
            tick=tick or float(self._infer("tick", f"1e-{sample.price_decimals}")),
            lot=lot or float(self._infer("lot", f"1e-{sample.qty_decimals}")),
            **facts,
        )

    def _infer(self, what: str, value: str) -> str:
        if not value:
            raise DataError(f"{self.name}: no message with a symbol, so this is no Binance capture")
        shown = value if what == "symbol" else f"{float(value):g}"
        self.inferred.append(f"{what} {shown}")
        return value

    def batches(self) -> Iterator[Batch]:
        """Rows in order of arrival."""
        self.counts = {}
        rows = _Rows(self.name, self.spec, self._repair)
        book = _Book(rows, self.counts)
        last_trade, snapshots, done = 0, 0, 0.0
        for line in self._lines():
            message, done = line.message, line.done
            if message.lastUpdateId:
                snapshots += 1
                book.snapshot(line)
            elif message.s and message.s != self.spec.symbol:
                self._count("other symbols")
            elif message.e == "depthUpdate":
                book.diff(self._diff(line))
            elif message.e == self._trade_event:
                last_trade = self._trade(rows, line, last_trade)
            else:
                self._count(f"{message.e or 'bookTicker'} left out")
            if rows.count >= BATCH:
                yield rows.take(done)
        self._want_snapshot(snapshots)
        self.counts["prints rounded"] = rows.rounded
        if rows.count:
            yield rows.take(1.0)

    def _want_snapshot(self, snapshots: int) -> None:
        diffs = self.counts.get("diffs", 0)
        if diffs and not snapshots and not self._repair:
            raise DataError(
                f"{self.name}: {diffs:,} depth diffs but no snapshot line, so there is no book; "
                "with repair its trades alone are imported"
            )

    def _diff(self, line: Line) -> Diff:
        m = line.message
        self._count("diffs")
        if not (isinstance(m.b, list) and isinstance(m.a, list) and m.u and m.E):
            raise DataError(f"{self.name}: line {line.number}: depthUpdate without b, a, u or E")
        ts_event = _venue_ns(m.T or m.E)
        return Diff(line.number, ts_event, line.ts_recv, m.U, m.u, m.pu, m.b, m.a)

    def _trade(self, rows: _Rows, line: Line, last: int) -> int:
        m = line.message
        number = m.t if m.e == "trade" else m.a
        if not (isinstance(number, int) and m.p and m.q and (m.T or m.E)):
            raise DataError(f"{self.name}: line {line.number}: {m.e} without id, p, q, T or E")
        self._count("trades")
        if number <= last:
            self._count("trades repeated")
            return last
        if last:
            self._count("trade ids missing", number - last - 1)
        if m.X != "MARKET":
            self._count("prints off the market")
            return number
        stamp = Stamp(_venue_ns(m.T or m.E), line.ts_recv, line.number, number)
        rows.add(stamp, Kind.TRADE, -1 if m.m else 1, [(m.p, m.q)], last=True)
        return number

    def _count(self, what: str, by: int = 1) -> None:
        if by:
            self.counts[what] = self.counts.get(what, 0) + by

    def _lines(self) -> Iterator[Line]:
        for at, path in enumerate(self._paths):
            for line in self._file_lines(path):
                yield line._replace(done=(at + line.done) / len(self._paths))

    def _file_lines(self, path: Path) -> Iterator[Line]:
        size = max(path.stat().st_size, 1)
        decode = msgspec.json.Decoder(Message).decode
        number = 0
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            try:
                for text in gzip.GzipFile(fileobj=file) if packed else file:
                    number += 1
                    try:
                        ts_recv, message = _parse(text, decode)
                    except _Unreadable as error:
                        if not self._repair:
                            raise DataError(f"{path}: line {number}: {error}") from error.__cause__
                        self._count("lines unreadable")
                        continue
                    yield Line(number, ts_recv, message, min(file.tell() / size, 1.0))
            except _DAMAGE as error:
                if not self._repair:
                    raise DataError(f"{path}: damaged after line {number}: {error}") from error
                self._count("files damaged at the end")


class _Unreadable(Exception):
    pass


def _parse(text: bytes, decode: Any) -> tuple[int, Message]:
    stamp, _, body = text.partition(b" ")
    try:
        message = decode(body)
    except msgspec.ValidationError as error:
        message = _foreign(body, error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _Unreadable(f"JSON is cut or damaged: {error}") from error
    if not stamp.isdigit() or len(stamp) not in (16, 19):
        raise _Unreadable(f"local time {stamp[:32]!r} is not 16 digits (us) or 19 digits (ns)")
    return int(stamp) * (1_000 if len(stamp) == 16 else 1), message.data or message


def _foreign(body: bytes, error: msgspec.ValidationError) -> Message:
    """A message of a kind not read here may use the same letters for other types."""
    try:
        name = msgspec.json.decode(body, type=_Name)
    except msgspec.MsgspecError:
        raise _Unreadable(str(error)) from error
    event = (name.data or name).e
    if event in ("", "depthUpdate", "trade", "aggTrade"):
        raise _Unreadable(f"{event or 'message'}: {error}") from error
    return Message(e=event)


def _venue_ns(stamp: int) -> int:
    """Venue time is in ms, or in us for a stream opened with `timeUnit=MICROSECOND`."""
    return stamp * (1_000_000 if stamp < 10**14 else 1_000)


class _Sample:
    """What the first lines say about the instrument."""

    def __init__(self, messages: Iterable[Message]) -> None:
        self.symbol = ""
        self.futures = False
        self.has_trade = False
        self.price_decimals = 0
        self.qty_decimals = 0
        for m in messages:
            self.symbol = self.symbol or m.s
            self.futures |= m.pu is not None
            self.has_trade |= m.e == "trade"
            levels = [*m.bids, *m.asks]
            for side in (m.b, m.a):
                levels += side if isinstance(side, list) else []
            if m.e in ("trade", "aggTrade"):
                levels.append((m.p, m.q))
            for price, qty in levels:
                self.price_decimals = max(self.price_decimals, _decimals(price))
                self.qty_decimals = max(self.qty_decimals, _decimals(qty))


def _decimals(number: str) -> int:
    return len(number.partition(".")[2].rstrip("0"))


class _Book:
    """The rule by which diffs and a snapshot become one book."""

    def __init__(self, rows: _Rows, counts: dict[str, int]) -> None:
        self._rows = rows
        self._counts = counts
        self._waiting: deque[Diff] = deque(maxlen=KEPT_DIFFS)
        self._snapshot_id: int | None = None  # until the first diff after it is applied
        self._last: int | None = None  # update id of the book, once it is live
        self._ts_event = UNTIMED  # of the newest diff

    def snapshot(self, line: Line) -> None:
        """Rebuild the book, then apply the diffs that waited."""
        if self._last is not None or self._snapshot_id is not None:
            self._count("snapshots not needed")
            return
        self._count("snapshots")
        m = line.message
        self._snapshot_id = m.lastUpdateId
        ts_event = _venue_ns(m.T or m.E) if m.T or m.E else self._ts_event
        stamp = Stamp(ts_event, line.ts_recv, line.number, m.lastUpdateId)
        recovered = Flag.RECOVERED
        self._rows.add(stamp, Kind.SNAPSHOT_BEGIN, 0, _NOTHING, recovered)
        self._rows.add(stamp, Kind.LEVEL, 1, m.bids, recovered)
        self._rows.add(stamp, Kind.LEVEL, -1, m.asks, recovered)
        self._rows.add(stamp, Kind.SNAPSHOT_END, 0, _NOTHING, recovered, last=True)
        waiting, self._waiting = self._waiting, deque(maxlen=KEPT_DIFFS)
        for diff in waiting:
            self.diff(diff._replace(ts_recv=line.ts_recv))

    def diff(self, diff: Diff) -> None:
        """Apply, keep or drop one diff."""
        self._ts_event = diff.ts_event
        if self._last is not None:
            self._next(diff)
        elif self._snapshot_id is not None:
            self._first(diff, self._snapshot_id)
        else:
            if len(self._waiting) == KEPT_DIFFS:
                self._count("diffs without a book")
            self._waiting.append(diff)

    def _first(self, diff: Diff, snapshot_id: int) -> None:
        futures = diff.before is not None
        wanted = snapshot_id if futures else snapshot_id + 1
        if diff.last < wanted:
            self._count("diffs dropped before the snapshot")
        elif diff.first <= wanted:
            self._apply(diff)
        else:
            self._count("snapshots too old")
            self._gap(diff)

    def _next(self, diff: Diff) -> None:
        chained = diff.before == self._last
        if diff.before is None:
            chained = diff.first == (self._last or 0) + 1
        if chained:
            self._apply(diff)
        elif diff.last <= (self._last or 0):
            self._count("diffs repeated")
        else:
            self._count("chain breaks")
            self._gap(diff)

    def _apply(self, diff: Diff) -> None:
        self._last = diff.last
        stamp = Stamp(diff.ts_event, diff.ts_recv, diff.line, diff.last)
        self._rows.add(stamp, Kind.LEVEL, 1, diff.bids, last=not diff.asks)
        self._rows.add(stamp, Kind.LEVEL, -1, diff.asks, last=True)

    def _gap(self, diff: Diff) -> None:
        self._last = self._snapshot_id = None
        stamp = Stamp(diff.ts_event, diff.ts_recv, diff.line, diff.last)
        self._rows.add(stamp, Kind.STATUS, 0, _NOTHING, last=True, ref_id=Trading.GAP)
        self._waiting.append(diff)

    def _count(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1


_NOTHING: Levels = [("0", "0")]


class Stamp(NamedTuple):
    """What all rows of one message share."""

    ts_event: int
    ts_recv: int
    line: int
    seq: int


@dataclass(slots=True)
class _Rows:
    """Rows being collected: amounts as text by row, the rest once for each run of rows alike."""

    name: str
    spec: InstrumentSpec
    repair: bool
    count: int = 0
    rounded: int = 0
    _amounts: Levels = field(default_factory=list)
    _runs: list[tuple[int, ...]] = field(default_factory=list)

    def add(
        self,
        stamp: Stamp,
        kind: Kind,
        side: int,
        levels: Levels,
        flags: int = 0,
        *,
        last: bool = False,
        ref_id: int = 0,
    ) -> None:
        """Append rows; `last`: the packet ends with them."""
        if levels:
            self._amounts += levels
            self._runs.append((*stamp, kind, side, flags | SEEN_BY_BOTH, ref_id, last, len(levels)))
            self.count += len(levels)

    def take(self, done: float) -> Batch:
        """All rows so far, as a batch."""
        runs = np.array(self._runs, np.int64).T
        timed = runs[0] != UNTIMED
        if not timed.all():  # a snapshot before any message with a time
            runs[0, ~timed] = runs[0, timed][0] if timed.any() else runs[1, 0]
        lengths = runs[-1]
        events = np.zeros(self.count, EVENT)
        names = ("ts_event", "ts_recv", "line", "seq", "kind", "side", "flags", "ref_id")
        columns = dict(zip(names, np.repeat(runs[:-2], lengths, axis=1), strict=True))
        lines = columns.pop("line")
        for name, values in columns.items():
            events[name] = values
        ends = np.cumsum(lengths) - 1
        events["flags"][ends[runs[-2] == 1]] |= np.uint16(Flag.LAST)
        self._fill_amounts(events, lines)
        self.count, self._amounts, self._runs = 0, [], []
        return Batch(events, lines, done)

    def _fill_amounts(self, events: NDArray[Any], lines: NDArray[np.int64]) -> None:
        loose = events["kind"] == Kind.TRADE if self.repair else None
        price, qty = (self._numbers(at, lines) for at in (0, 1))
        try:
            events["price"], rounded = on_grid(
                price, self.spec.tick, "price", loose=loose, rows=lines, where="line"
            )
            events["qty"], _ = on_grid(qty, self.spec.lot, "qty", rows=lines, where="line")
        except DataError as error:
            raise DataError(
                f"{self.spec.name}: {error}; give the tick or lot if it was inferred"
            ) from None
        self.rounded += rounded

    def _numbers(self, at: int, lines: NDArray[np.int64]) -> NDArray[np.float64]:
        text = [amount[at] for amount in self._amounts]
        try:
            return np.array(list(map(float, text)), np.float64)
        except ValueError:
            row = next(row for row, number in enumerate(text) if not _is_number(number))
            what = ("price", "qty")[at]
            raise DataError(f"line {lines[row]}: {what} {text[row]!r} is no number") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
