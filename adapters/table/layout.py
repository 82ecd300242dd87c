"""What a map file may say."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from hft.errors import ConfigError
from hft.types import InstrumentSpec, Kind


class TimeColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of times since the epoch, or of ISO text or timestamps."""

    column: str
    unit: Literal["s", "ms", "us", "ns", "iso"] = "ns"
    zone: str = "UTC"
    """Of ISO text that names no zone itself."""
    add: str = "0ns"
    """Added to every time: gives a file with one clock an assumed feed latency."""


class SideColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column that says whose a row is, or one side for all rows."""

    column: str = ""
    buy: tuple[str, ...] = ("B", "b", "buy", "Buy", "BUY", "bid", "1", "+1")
    sell: tuple[str, ...] = ("S", "s", "sell", "Sell", "SELL", "ask", "-1")
    none: tuple[str, ...] = ()


class KindColumn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column of kinds, each value spelt out."""

    column: str
    values: dict[str, str]


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A column that marks rows which rebuild the book."""

    column: str
    values: tuple[str, ...] = ("true", "True", "1")


class Columns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which column gives which field."""

    ts_event: TimeColumn
    ts_recv: TimeColumn
    price: str
    qty: str
    kind: str | KindColumn
    """A kind for all rows, such as `trade` or `level`, or a column."""
    side: str | SideColumn
    order_id: str = ""
    ref_id: str = ""
    seq: str = ""
    snapshot: Snapshot | None = None


class Map(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole map."""

    instrument: InstrumentSpec
    columns: Columns
    packets: str = "time"
    """Rows of one packet: equal in both times (`time`), each by itself (`row`), or equal in a
    column."""
    where: dict[str, str] = {}
    """Only rows with these values are taken, by column."""
    reorders: bool = False
    """Rows arrive in another order than they happened (docs/data.md)."""
    separator: Annotated[str, msgspec.Meta(min_length=1, max_length=1)] = ","
    names: tuple[str, ...] = ()
    """Column names of a CSV file without a header line."""


def load_map(path: str | Path) -> Map:
    """Read a map, or say which key of it is wrong."""
    path = Path(path)
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Map)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{path}: {error}") from error


def codes_of(c: Columns) -> dict[str, tuple[str, dict[str, int]]]:
    """The column of kind and of side, and the code of each word; no column: the code of ``."""
    kind, side = c.kind, c.side
    if isinstance(kind, str):
        kinds = ("", {"": _kind(kind)})
    else:
        kinds = (kind.column, {word: _kind(name) for word, name in kind.values.items()})
    if isinstance(side, str):
        side = SideColumn(side)
    codes = {word: 1 for word in side.buy} | {word: -1 for word in side.sell}
    return {"kind": kinds, "side": (side.column, codes | {word: 0 for word in side.none})}


def _kind(name: str) -> int:
    try:
        return int(Kind[name.upper()])
    except KeyError:
        known = ", ".join(kind.name.lower() for kind in Kind)
        raise ConfigError(f"columns.kind: {name!r} is no kind; want one of {known}") from None
