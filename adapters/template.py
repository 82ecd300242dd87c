"""A made-up text format, to be copied; docs/adding-an-importer.md goes through it.

One event a line, oldest first, plain or gzip; times are microseconds since the epoch, UTC:

    1700000000000100,bid,100.01,300      300 are bid at 100.01; 0: the level is gone
    1700000000000100,ask,100.03,200
    1700000000004200,sell,100.01,100     a print whose aggressor sold
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hft.data.checks import TS_END, Events
from hft.data.exact import on_grid
from hft.data.importing import Batch
from hft.data.repairs import set_last
from hft.data.sources import Request
from hft.errors import DataError
from hft.types import EVENT, SEEN_BY_BOTH, InstrumentSpec, Kind

BLOCK_BYTES = 1 << 22  # of text decoded at once; an import needs some 20 times that of memory

_MEANS = {
    "bid": (Kind.LEVEL, 1),
    "ask": (Kind.LEVEL, -1),
    "buy": (Kind.TRADE, 1),
    "sell": (Kind.TRADE, -1),
}


def open_files(request: Request) -> list[TemplateFile]:
    """One source a file, all of one instrument; what the format knows need not be given."""
    spec = request.spec(venue="TEMPLATE", lot=1.0)
    return [TemplateFile(path, spec, repair=request.repair) for path in request.paths]


class TemplateFile:
    """One file as a source of EVENT rows."""

    reorders = False
    cannot_tell = ("no receive time: rows reach us as they happen",)

    def __init__(self, path: Path, spec: InstrumentSpec, *, repair: bool) -> None:
        if not path.is_file():
            raise DataError(f"{path}: no such file")
        self.name = str(path)
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.inferred: list[str] = []
        self._path = path
        self._repair = repair

    def batches(self) -> Iterator[Batch]:
        """Rows in file order. Those of the newest time wait, since their packet may go on."""
        self.counts = {"lines": 0}
        waiting = np.empty(0, EVENT)
        for text, done in self._blocks():
            rows = np.concatenate([waiting, self._decode(text)])
            whole = int(np.argmax(rows["ts_event"] == rows["ts_event"][-1])) if len(rows) else 0
            waiting = rows[whole:].copy()
            set_last(rows[:whole])
            yield Batch(rows[:whole], done=done)
        set_last(waiting)
        yield Batch(waiting, done=1.0)

    def _blocks(self) -> Iterator[tuple[str, float]]:
        """Whole lines, BLOCK_BYTES of them, and the share of the file that has been read."""
        text, damage = bytearray(), ""
        try:
            size = max(self._path.stat().st_size, 1)
            with self._path.open("rb") as file:
                packed = file.peek()[:2] == b"\x1f\x8b"
                plain: Any = gzip.GzipFile(fileobj=file) if packed else file
                while piece := plain.read1(1 << 16):  # read1, for what comes before a damage
                    text += piece
                    if len(text) >= BLOCK_BYTES:
                        yield _take_lines(text), file.tell() / size
        except (OSError, EOFError, zlib.error) as error:  # all that a damaged gzip raises
            damage = str(error)
        yield _take_lines(text), 1.0
        if text or damage:
            self._cut(damage or f"line {self.counts['lines'] + 1} has no end")

    def _cut(self, damage: str) -> None:
        if not self._repair:
            raise DataError(f"{self.name}: damaged after line {self.counts['lines']}: {damage}")
        self.counts["files damaged at the end"] = 1

    def _decode(self, text: str) -> Events:
        import polars as pl

        split = pl.Series(text.split("\n")[:-1], dtype=pl.String).str.split_exact(",", 4)
        cells = split.struct.rename_fields(["time", "what", "price", "size", "more"])
        numbers = cells.struct.unnest().select(
            pl.col("time").cast(pl.Int64, strict=False),
            pl.col("price", "size").cast(pl.Float64, strict=False),
            kind=pl.col("what").replace_strict(_codes(0), default=None, return_dtype=pl.UInt8),
            side=pl.col("what").replace_strict(_codes(1), default=None, return_dtype=pl.Int8),
            sound=pl.col("more").is_null(),
        )
        in_range = pl.col("time").is_between(0, TS_END // 1000, closed="none")
        sound = numbers.select(pl.all_horizontal(in_range, pl.all().is_not_null(), "sound"))
        good = sound.to_series().fill_null(value=False).to_numpy()
        lines = self.counts["lines"] + 1 + np.arange(len(good))
        self._want(good, lines, text)
        self.counts["lines"] += len(good)
        return self._rows(numbers.filter(good), lines[good])

    def _want(self, good: Any, lines: Any, text: str) -> None:
        if good.all():
            return
        if not self._repair:
            at = int(good.argmin())
            line = text.split("\n")[at]
            raise DataError(
                f"{self.name}: line {lines[at]}: {line!r} is not `time,what,price,size` with a "
                f"time in us and what one of {', '.join(_MEANS)}"
            )
        bad = int(np.count_nonzero(~good))
        self.counts["lines unreadable"] = self.counts.get("lines unreadable", 0) + bad

    def _rows(self, numbers: Any, lines: Any) -> Events:
        rows = np.zeros(len(numbers), EVENT)
        rows["ts_event"] = rows["ts_recv"] = numbers["time"].to_numpy() * 1000
        rows["kind"], rows["side"] = numbers["kind"].to_numpy(), numbers["side"].to_numpy()
        rows["flags"] = SEEN_BY_BOTH
        for field, column, step in (
            ("price", "price", self.spec.tick),
            ("qty", "size", self.spec.lot),
        ):
            try:
                values = numbers[column].to_numpy()
                rows[field], _ = on_grid(values, step, field, rows=lines, where="line")
            except DataError as error:
                raise DataError(f"{self.name}: {error}") from None
        return rows


def _take_lines(text: bytearray) -> str:
    """The whole lines in `text`, which keeps the rest."""
    end = text.rfind(b"\n") + 1
    lines = text[:end].decode("utf-8", "replace")
    del text[:end]
    return lines


def _codes(which: int) -> dict[str, int]:
    return {word: int(means[which]) for word, means in _MEANS.items()}
