"""LOBSTER message files, and the order book file that goes with them.

    time [s after midnight, New York], type, order id, size, price * 10000, resting side

Types: 1 add, 2 partial cancel, 3 delete, 4 execution, 5 execution of a hidden order, 6 cross, and
7 halt (price -1), quotes resume (0) or trading resumes (1). Symbol and date are in the file's name
alone, `SYMBOL_YYYY-MM-DD_..._message_LEVELS.csv`, or given by `--symbol` and `--date`.

Row k of `..._orderbook_LEVELS.csv` is the book after message k, so its first row with message 1
undone is the book that the messages start from: each level becomes one order with a negative id.

Given with the same name as the messages, beside them or among the paths, the order book file is
followed to the end: the book then holds just the levels in view, and what comes into view or leaves
it is inferred from it (view.py). One of another name or stretch gives the opening book alone; then
an order that leaves the levels may be cancelled untold and stay for ever, which matters the more
the fewer levels there are.
"""

from __future__ import annotations

import re
from pathlib import Path

from hft.adapters.lobster.messages import LobsterFile
from hft.data.sources import Request
from hft.errors import ConfigError

__all__ = ["LobsterFile", "open_files"]

_NAME = re.compile(r"^(?P<symbol>[^_]+)_(?P<date>\d{4}-\d{2}-\d{2})_")


def open_files(request: Request) -> list[LobsterFile]:
    """One source a message file, each with the order book file that belongs to it."""
    messages = [path for path in request.paths if "_orderbook_" not in path.name]
    books: dict[tuple[str, str], Path] = {}
    for path in request.paths:
        if path not in messages:
            key = _symbol_and_date(path, request)
            if key in books:
                raise ConfigError(f"{path}: {books[key]} is the order book of that day already")
            books[key] = path
    sources = []
    for path in messages:
        symbol, date = _symbol_and_date(path, request)
        spec = request.spec_of_whole(symbol=symbol, venue="NASDAQ", tick=0.01, currency="USD")
        book = books.pop((symbol, date), None) or _beside(path)
        follow = book is not None and _bare(book) == _bare(path)
        sources.append(LobsterFile(path, spec, date, book, follow=follow, repair=request.repair))
    if books:
        raise ConfigError(f"{next(iter(books.values()))}: no message file of that symbol and day")
    return _wanted(sources, request.symbols())


def _wanted(sources: list[LobsterFile], symbols: list[str]) -> list[LobsterFile]:
    held = dict.fromkeys(source.spec.symbol for source in sources)
    for symbol in symbols:
        if symbol not in held:
            given = ", ".join(held) or "none"
            raise ConfigError(f"no message file of {symbol}; those given are of {given}")
    return [source for source in sources if not symbols or source.spec.symbol in symbols]


def _symbol_and_date(path: Path, request: Request) -> tuple[str, str]:
    """What the name says; but a date that is given wins, and a symbol where the name has none."""
    found = _NAME.match(path.name)
    if found is not None:
        return found["symbol"], str(request.date or found["date"])
    if request.date is None or len(request.symbols()) != 1:
        raise ConfigError(
            f"{path}: symbol and date of a LOBSTER file are in its name only; name it "
            "SYMBOL_YYYY-MM-DD_message_LEVELS.csv, or give --symbol and --date"
        )
    return request.symbols()[0], str(request.date)


def _bare(path: Path) -> str:
    """The name without what tells messages from books, and without endings."""
    return path.name.replace("_orderbook_", "_message_").partition(".csv")[0]


def _beside(path: Path) -> Path | None:
    book = path.with_name(path.name.replace("_message_", "_orderbook_"))
    return book if book != path and book.is_file() else None
