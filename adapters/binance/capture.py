"""Capture files as one source of EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from hft.adapters.binance.book import Book, Diff, Line
from hft.adapters.binance.messages import Message, Sample, Unreadable, parse, venue_ns
from hft.adapters.binance.rows import Rows, Stamp
from hft.data.importing import Batch
from hft.data.text import DAMAGE, TextFile
from hft.errors import DataError
from hft.types import InstrumentSpec, Kind

BATCH = 1 << 18  # rows
SAMPLE = 20_000  # lines looked at to infer symbol, market, tick and lot


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
    cannot_tell = ()

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
        sample = Sample(line.message for line in islice(self._lines(), SAMPLE))
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
        rows = Rows(self.name, self.spec, self._repair)
        book = Book(rows, self.counts)
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
        if rows.count:
            yield rows.take(1.0)
        self._count("prints rounded", rows.rounded)
        self._count("amounts unreadable", rows.unread)

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
        ts_event = venue_ns(m.T or m.E)
        return Diff(line.number, ts_event, line.ts_recv, m.U, m.u, m.pu, m.b, m.a)

    def _trade(self, rows: Rows, line: Line, last: int) -> int:
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
        stamp = Stamp(venue_ns(m.T or m.E), line.ts_recv, line.number, number)
        rows.add(stamp, Kind.TRADE, -1 if m.m else 1, [(m.p, m.q)], last=True)
        return number

    def _count(self, what: str, by: int = 1) -> None:
        if by:
            self.counts[what] = self.counts.get(what, 0) + by

    def _lines(self) -> Iterator[Line]:
        decode = msgspec.json.Decoder(Message).decode
        for at, path in enumerate(self._paths):
            number = 0
            try:
                for chunk, share in TextFile(path).blocks():
                    done = (at + share) / len(self._paths)
                    for text in chunk.removesuffix(b"\n").split(b"\n"):
                        number += 1
                        try:
                            ts_recv, message = parse(text, decode)
                        except Unreadable as error:
                            self._skip(path, number, error)
                            continue
                        yield Line(number, ts_recv, message, done)
            except DAMAGE as error:
                if not self._repair:
                    raise DataError(f"{path}: damaged after line {number}: {error}") from error
                self._count("files damaged at the end")

    def _skip(self, path: Path, number: int, error: Unreadable) -> None:
        if not self._repair:
            raise DataError(f"{path}: line {number}: {error}") from error.__cause__
        self._count("lines unreadable")
