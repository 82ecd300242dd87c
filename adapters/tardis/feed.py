"""Tardis files of one instrument as one source of EVENT rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hft.adapters.tardis.merge import merged
from hft.adapters.tardis.rows import SAMPLE, TIMES, FileType, file_type
from hft.data.checks import TS_END
from hft.data.csv_blocks import Block, CsvFile, count, decimals
from hft.data.importing import NO_DEPTH, Batch
from hft.data.packets import Packets
from hft.data.sources import Request
from hft.errors import ConfigError, DataError, OutOfOrder

_TS_END_US = TS_END // 1_000


class TardisFile:
    """One file: what it is, and how its first lines look."""

    def __init__(self, path: Any, *, repair: bool) -> None:
        self.csv = CsvFile(path, ended=True, repair=repair)
        self.csv.want(["exchange", "symbol", *TIMES])
        self.type: FileType = file_type(self.csv)
        names = ["exchange", "symbol", *self.type.prices, *self.type.amounts]
        self._sample = self.csv.sample(names, SAMPLE)

    def instruments(self) -> list[tuple[str, str]]:
        """Exchange and symbol of those in the first lines."""
        exchange, symbol = self._sample["exchange"], self._sample["symbol"]
        pairs = dict.fromkeys(zip(exchange.codes.tolist(), symbol.codes.tolist(), strict=True))
        return [(exchange.words[e], symbol.words[s]) for e, s in pairs]

    def decimals(self, symbol: str) -> tuple[int, int]:
        """Most decimals of a price, and of an amount."""
        symbols = self._sample["symbol"]
        mine = symbols.codes == symbols.words.index(symbol)
        places = [
            max(decimals(self._sample[name].among(mine)) for name in names)
            for names in (self.type.prices, self.type.amounts)
        ]
        return places[0], places[1]


def open_files(request: Request) -> list[TardisFeed]:
    """One source an instrument, of all files that hold it."""
    files = [TardisFile(path, repair=request.repair) for path in request.paths]
    found: dict[tuple[str, str], list[TardisFile]] = {}
    for file in files:
        for instrument in file.instruments():
            found.setdefault(instrument, []).append(file)
    wanted = request.symbols() or list(dict.fromkeys(symbol for _, symbol in found))
    missing = [name for name in wanted if all(symbol != name for _, symbol in found)]
    if missing or not wanted:
        raise ConfigError(
            f"{request.paths[0]}: no {', '.join(missing) or 'row'} in the first {SAMPLE:,} lines; "
            f"they hold {', '.join(symbol for _, symbol in found) or 'nothing'}"
        )
    return [
        TardisFeed(held, exchange, symbol, request)
        for (exchange, symbol), held in found.items()
        if symbol in wanted
    ]


class TardisFeed:
    """The files of one instrument, merged by `local_timestamp`.

    Args:
        files: of different types.
        exchange: as the files have it.
        symbol: likewise.
        request: tick and lot if they are not as the decimals show.
    """

    reorders = True

    def __init__(
        self, files: list[TardisFile], exchange: str, symbol: str, request: Request
    ) -> None:
        self.name = " ".join(str(file.csv.path) for file in files)
        self.counts: dict[str, int] = {}
        self._files = files
        self._where = {"exchange": exchange, "symbol": symbol}
        self._repair = request.repair
        types = [file.type.name for file in files]
        books = [name for name in types if name in ("incremental_book_L2", "book_snapshot")]
        if len(books) > 1 or len(set(types)) < len(types):
            raise ConfigError(
                f"{self.name}: {', '.join(types)} of one instrument; give one file of trades, one "
                "of quotes and one of the book; days are imported one by one"
            )
        self.cannot_tell = _cannot_tell(types)
        places = [max(place) for place in zip(*(f.decimals(symbol) for f in files), strict=True)]
        steps = {name: float(f"1e-{n}") for name, n in zip(("tick", "lot"), places, strict=True)}
        self.inferred = [f"{name} {v:g}" for name, v in steps.items() if name not in request.facts]
        venue = exchange.upper().replace("-", "_")
        self.spec = request.spec(symbol=symbol, venue=venue, **steps)

    def batches(self) -> Iterator[Batch]:
        """Rows in order of arrival; a batch ends with a packet of each file."""
        self.counts = {"lines": 0}
        if len(self._files) == 1:
            yield from self._rows(self._files[0])
            return
        yield from merged([self._in_order(file) for file in self._files])

    def _rows(self, file: TardisFile) -> Iterator[Batch]:
        rows = file.type.rows(self.spec, repair=self._repair)
        packets = Packets("time")
        try:
            for block in file.csv.blocks(file.type.kinds, self.counts, self._where):
                sound = self._sound(block, file)
                count(self.counts, "lines", len(sound.lines))
                if len(sound.lines):
                    part = packets.feed(rows.part(sound))
                    if len(part.events):
                        yield Batch(part.events, part.lines, block.done)
            part = packets.flush(rows.rest())
        except DataError as error:
            raise self._named(error, file) from None
        if len(part.events):
            yield Batch(part.events, part.lines, 1.0)
        count(self.counts, "prints rounded", rows.rounded)

    def _named(self, error: DataError, file: TardisFile) -> DataError:
        path = str(file.csv.path)
        return error if path in str(error) else type(error)(f"{path}: {error}")

    def _sound(self, block: Block, file: TardisFile) -> Block:
        """Lines whose times can be."""
        bad = np.zeros(len(block.lines), bool)
        for name in TIMES:
            bad |= (block.columns[name] < 0) | (block.columns[name] >= _TS_END_US)
        if not bad.any():
            return block
        if not self._repair:
            at = int(bad.argmax())
            raise DataError(
                f"{file.csv.path}: line {block.lines[at]}: timestamp "
                f"{block.columns['timestamp'][at]} or local_timestamp "
                f"{block.columns['local_timestamp'][at]} is no time in us between 1970 and 2200"
            )
        count(self.counts, "lines with impossible times", int(np.count_nonzero(bad)))
        columns = {name: values[~bad] for name, values in block.columns.items()}
        return Block(columns, block.lines[~bad], block.done)

    def _in_order(self, file: TardisFile) -> Iterator[Batch]:
        """Batches that can be merged; where `local_timestamp` goes back, only repair takes them."""
        last = 0
        for batch in self._rows(file):
            recv = batch.events["ts_recv"]
            back = np.diff(recv, prepend=last) < 0
            if back.any() and not self._repair:
                at = int(back.argmax())
                line = "" if batch.lines is None else f": line {batch.lines[at]}"
                raise OutOfOrder(
                    f"{file.csv.path}{line}: local_timestamp {recv[at] // 1000} goes back"
                )
            last = int(recv[-1])
            yield batch


def _cannot_tell(types: list[str]) -> tuple[str, ...]:
    said = ["`timestamp` is Tardis' own where the venue sends none"]
    if "trades" not in types:
        said.append("no prints")
    if "incremental_book_L2" not in types:
        only = {"book_snapshot": "the book between two snapshots, and below their levels"}
        quotes = NO_DEPTH if "quotes" in types else "no book"
        said.append(next((only[name] for name in types if name in only), quotes))
    else:
        said.append("orders: the book is known by level")
    return tuple(said)
