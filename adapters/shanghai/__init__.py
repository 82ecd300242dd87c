"""Shanghai (SSE) Level-2 order and trade files, csv, gzip or zip, all of a day given together.

Read are the vendors' layouts with these columns, told by the header:

| orders | trades | sequence | time |
|---|---|---|---|
| `OrderType` A D, `OrderNO`, `Balance` | `TradeBSFlag` B S N | `BizIndex` | day in its name |
| `OrderType` 2 10, `OrderNO`, `OrderQty` | `TradeBSFlag` 1 2 0 | `ApplSeqNum` | `MDDate` |
| both in one file, told by `SourceType` | | `ApplSeqNum` | `Date` |

Where a layout has no date, the name of the file or its folder holds it, or `--date` gives it. Other
files in a zip (snapshots, order queues) are left out.

The venue publishes an aggressive order only with what is left of it after matching, and after its
trades. So a trade flagged B (S) reduces the resting sell (buy) order alone, and is an EXECUTE of
it; one flagged N is an auction's match of two resting orders. docs/formats-china.md has the rest.
"""

from __future__ import annotations

from datetime import date

from hft.adapters.china import inferred
from hft.adapters.china.clock import date_ns, date_of
from hft.adapters.shanghai.layouts import BOTH, LAYOUTS, Layout, layout_of, symbol_of
from hft.adapters.shanghai.source import Found, ShanghaiFiles
from hft.data.arrow_columns import words_of
from hft.data.blocks import Place
from hft.data.sources import Request
from hft.data.text import TextFile, text_files
from hft.data.text_blocks import TextReader, names_in
from hft.errors import ConfigError, SchemaError
from hft.types import InstrumentSpec

__all__ = ["ShanghaiFiles", "open_files"]

_TICKS = {"6": 0.01, "5": 0.001, "9": 0.001}
"""Price step by the first digit of a number: shares, funds, shares traded in dollars."""


def open_files(request: Request) -> list[ShanghaiFiles]:
    """One source an instrument; all of those in the files, unless some are asked for."""
    known = [one for path in request.paths for one in _known(text_files(path))]
    found = [_look_into(file, layout, request.date) for file, layout in known]
    held = dict.fromkeys(symbol_of(word) for f in found for word in f.blocks)
    wanted = [symbol_of(word) for word in request.symbols()] or list(held)
    for symbol in wanted:
        if symbol not in held:
            raise ConfigError(f"no row of {symbol}; the files hold {', '.join(held) or 'none'}")
    return [_source(request, symbol, found) for symbol in wanted]


def _known(files: list[TextFile]) -> list[tuple[TextFile, Layout]]:
    headers = [(file, names_in(file)) for file in files]
    known = [(file, layout) for file, names in headers if (layout := layout_of(names))]
    if not known:
        seen = "; ".join(f"{file.name} has {', '.join(names)[:80]!r}" for file, names in headers)
        raise SchemaError(
            f"no Shanghai order or trade file: {seen}; want columns "
            f"such as {', '.join(LAYOUTS[0].columns())} (docs/formats-china.md)"
        )
    return known


def _look_into(file: TextFile, layout: Layout, given: date | None) -> Found:
    """Which symbols are in which blocks; damage is left for the import to find."""
    blocks: dict[str, set[Place]] = {}
    for block in TextReader(file, [layout.symbol], repair=True).blocks():
        for word in words_of(block.column(layout.symbol))[0]:
            blocks.setdefault(word, set()).add(block.place)
    _want_shanghai(file, blocks)
    day = None if layout.date else given or date_of(file)
    return Found(file, layout, date_ns(day) if day else 0, blocks)


def _want_shanghai(file: TextFile, blocks: dict[str, set[Place]]) -> None:
    for word in blocks:
        if "." in word and not word.upper().endswith((".SH", ".SSE", ".XSHG")):
            raise SchemaError(
                f"{file.name}: holds {word}; want Shanghai securities alone (.SH), since elsewhere "
                "an order is published as it came, before its trades"
            )


def _source(request: Request, symbol: str, found: list[Found]) -> ShanghaiFiles:
    mine = [f for f in found if any(symbol_of(word) == symbol for word in f.blocks)]
    for day in {f.day_ns for f in mine}:
        _want_both(symbol, [f for f in found if f.day_ns == day], mine)
    spec, facts = _spec(request, symbol)
    return ShanghaiFiles(spec, mine, repair=request.repair, inferred=facts)


def _want_both(symbol: str, given: list[Found], mine: list[Found]) -> None:
    """Orders without their trades make a wrong book, and the other way round."""
    kinds = {bool(f.layout.kind) for f in given if f.layout is not BOTH}
    if len(kinds) == 1:
        have, lack = ("orders", "trades") if kinds == {True} else ("trades", "orders")
        raise ConfigError(
            f"{mine[0].file.name}: {have} of {symbol} without {lack} of that day; give the files "
            "of both in one command"
        )


def _spec(request: Request, symbol: str) -> tuple[InstrumentSpec, list[str]]:
    known: dict[str, object] = {"symbol": symbol, "venue": "SSE", "lot": 1.0}
    known["currency"] = "USD" if symbol.startswith("9") else "CNY"
    if symbol[:1] in _TICKS:
        known["tick"] = _TICKS[symbol[:1]]
    spec = request.spec(**known)
    return spec, inferred(request, spec, "tick", "lot")
