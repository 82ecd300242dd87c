"""A latency profile: measured stage times with their context, one Parquet file.

One row a message to the venue (`kind` "order") or an inference ("model"), in order of time. What a
row did not measure is null. Waiting is kept beside service and never resampled: it is what the
simulated server makes anew. The file's metadata hold one JSON text under `hft.latency_profile`.
See docs/latency.md for every column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from hft.errors import ConfigError, DataError
from hft.whole_files import replacing

if TYPE_CHECKING:
    import polars as pl

Int = NDArray[np.int64]
Message = Literal["new", "cancel", "replace"]

VERSION = 1
METADATA_KEY = b"hft.latency_profile"
NONE = np.iinfo(np.int64).min
"""A leg that a row did not measure."""
NETWORK_LEGS = ("feed_ns", "entry_ns", "response_ns")
"""Between two clocks: an offset of one against the other can make them negative."""
LOCAL_LEGS = ("wait_ns", "service_ns", "compute_ns", "risk_ns")
"""Between two stamps of one clock."""
LEGS_NS = (*NETWORK_LEGS, *LOCAL_LEGS)
COUNTS = {"rate": 0, "batch": 1, "order_id": 0}
"""Whole numbers that are no times, each with the least it can be."""
WORDS = ("tier", "device", "message", "outcome", "regime")
COLUMNS = ("kind", "ts", *LEGS_NS, *COUNTS, *WORDS)
KINDS = ("order", "model")
MESSAGES = ("new", "cancel", "replace")
OWN_TRACE = 1000
"""Cancels or replaces that a profile must have for them to be drawn from their own."""
RATE_WINDOW_NS = 100_000_000
STAGES = {
    "feed": ("order", "feed_ns"),
    "entry": ("order", "entry_ns"),
    "response": ("order", "response_ns"),
    "compute": ("order", "compute_ns"),
    "risk": ("order", "risk_ns"),
    "inference": ("model", "service_ns"),
}
"""Which rows and column a recipe's leg is drawn from."""


class ClockOffset(msgspec.Struct, frozen=True, kw_only=True):
    """Our clock less the venue's, as far as the stamps can tell."""

    estimate_ns: int
    """What was taken off the feed and response legs and added to entry."""
    half_width_ns: int
    """The true offset lies within estimate +- half_width; 0: one clock made all stamps."""


class ProfileFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The metadata of a profile's file."""

    version: int = VERSION
    origin: Literal["measured", "synthetic", "fitted"]
    source: str
    """What it was made from: a run folder's name, a file, a formula."""
    venue: str = ""
    clock_offset: ClockOffset | None = None
    """None: the legs are as stamped, and nobody knows by how much the clocks differed."""
    created_from: dict[str, Any] = {}
    """Options and versions it was made with."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LatencyProfile:
    """Rows and facts; `name` is how messages call it, a file or a shipped profile."""

    name: str
    facts: ProfileFacts
    frame: pl.DataFrame

    def __len__(self) -> int:
        return self.frame.height

    def stages(self) -> list[str]:
        """Legs of a recipe that can be drawn from it."""
        return [name for name in STAGES if self.count(name)]

    def count(self, stage: str, message: Message | None = None) -> int:
        """How many rows measured a stage, of all messages or of one class."""
        return int(self.rows([stage], message).size)

    def rows(self, stages: list[str], message: Message | None = None) -> Int:
        """Numbers of the rows that measured all these stages, (m,) ascending."""
        import polars as pl

        wanted = [pl.col("kind") == STAGES[name][0] for name in stages]
        wanted += [pl.col(STAGES[name][1]).is_not_null() for name in stages]
        if message is not None:
            wanted.append(pl.col("message").fill_null("new") == message)
        found: Int = self.frame.select(pl.all_horizontal(wanted).arg_true()).to_series().to_numpy()
        return found.astype(np.int64)

    def numbers(self, column: str, rows: Int | None = None) -> Int:
        """A column of whole numbers, NONE where it is null, (m,)."""
        values = self.frame[column].fill_null(NONE).to_numpy()
        return values if rows is None else values[rows]


def load_profile(where: str | Path) -> LatencyProfile:
    """A profile by file, or by the name of one that is shipped.

    Raises:
        ConfigError: no such file or name.
        DataError: it is no profile, of another version, or a row is wrong.
    """
    from hft.execution.synthetic_profiles import SHIPPED, synthetic_profile

    if str(where) in SHIPPED and not Path(where).is_file():
        return synthetic_profile(str(where))
    path = Path(where)
    if not path.is_file():
        raise ConfigError(
            f"latency profile {str(where)!r}: no such file, and those shipped are "
            f"{', '.join(SHIPPED)}"
        )
    status = path.stat()
    return _load(path.resolve(), status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=4)
def _load(path: Path, modified_ns: int, size: int) -> LatencyProfile:
    # A run and its variants read one file; the time and size tell when it was written anew.
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} is not a latency profile: {error}") from error
    facts = _facts(path, (table.schema.metadata or {}).get(METADATA_KEY))
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    profile = checked(LatencyProfile(str(path), facts, frame))
    text = ("kind", *WORDS)
    kinds = {column: pl.String if column in text else pl.Int64 for column in COLUMNS}
    return LatencyProfile(str(path), facts, profile.frame.select(COLUMNS).cast(kinds))  # type: ignore[arg-type]


def _facts(path: Path, text: bytes | None) -> ProfileFacts:
    if text is None:
        raise DataError(
            f"{path} is not a latency profile: its metadata have no {METADATA_KEY.decode()}; "
            "`hft latency fit` makes one"
        )
    try:
        version = msgspec.json.decode(text, type=dict[str, Any]).get("version")
        if version != VERSION:
            raise DataError(f"{path} has version {version}; this release reads {VERSION}")
        return msgspec.json.decode(text, type=ProfileFacts)
    except msgspec.MsgspecError as error:
        raise DataError(f"{path}: its {METADATA_KEY.decode()} is damaged: {error}") from error


def save_profile(profile: LatencyProfile, path: Path) -> None:
    """Writes a profile, checked, with columns in their order, whole or not at all.

    Raises:
        ConfigError: the name does not end in `.parquet`.
    """
    import pyarrow.parquet as pq

    table = checked(profile).frame.select(COLUMNS).to_arrow()
    text = msgspec.json.encode(profile.facts)
    table = table.replace_schema_metadata({METADATA_KEY: text})
    if path.suffix != ".parquet":
        raise ConfigError(f"a profile is a .parquet file, {path} is {path.suffix or 'bare'}")
    with replacing(path) as draft:
        pq.write_table(table, draft, compression="zstd")


def make_profile(
    name: str, facts: ProfileFacts, columns: dict[str, NDArray[Any] | list[Any]]
) -> LatencyProfile:
    """A profile of columns that may be absent; NONE is null in those of whole numbers."""
    import polars as pl

    rows = len(columns["ts"])
    made = []
    for column in COLUMNS:
        kind = pl.String if column == "kind" or column in WORDS else pl.Int64
        if column not in columns:
            made.append(pl.Series(column, [None] * rows, kind))
            continue
        series = pl.Series(column, columns[column], kind)
        made.append(series if kind is pl.String else series.set(series == NONE, None))
    frame = pl.DataFrame(made)
    return checked(LatencyProfile(name, facts, frame.sort("ts", maintain_order=True)))


def checked(profile: LatencyProfile) -> LatencyProfile:
    """The profile, if nothing is wrong with it.

    Raises:
        DataError: names file, row, value, and what would be right.
    """
    name, frame = profile.name, profile.frame
    missing = [column for column in COLUMNS if column not in frame.columns]
    if missing:
        raise DataError(f"{name} lacks columns {', '.join(missing)}; a profile has {COLUMNS}")
    if not frame.height:
        raise DataError(f"{name} has no rows: want at least one message or inference")
    for column in ("ts", *LEGS_NS, *COUNTS):
        _require_whole(name, frame[column])
    for column in ("kind", *WORDS):
        _require_text(name, frame[column])
    _require_known(name, frame["kind"], KINDS, "null" if frame["kind"].null_count() else "")
    _require_known(name, frame["message"].drop_nulls(), MESSAGES)
    _require_sorted(name, frame["ts"])
    for column in NETWORK_LEGS:
        _require_least(
            name,
            frame[column],
            0,
            "a network leg is negative where two clocks differ: `hft latency fit` estimates their "
            "offset and takes it off",
        )
    for column in LOCAL_LEGS:
        _require_least(
            name,
            frame[column],
            0,
            "both its stamps come from one clock, so its end was stamped before its start: the "
            "record is wrong",
        )
    for column, least in COUNTS.items():
        _require_least(name, frame[column], least, f"want at least {least}")
    return profile


def _require_whole(name: str, column: pl.Series) -> None:
    import polars as pl

    if column.dtype == pl.UInt64 and (column > np.iinfo(np.int64).max).any():
        row = (column > np.iinfo(np.int64).max).arg_true()[0]
        raise DataError(f"{name}: {column.name} is {column[row]} in row {row}: want at most 2^63-1")
    if column.dtype.is_integer() or column.dtype == pl.Null:
        return
    if column.dtype.is_float() and column.is_nan().any():
        row = column.is_nan().arg_true()[0]
        raise DataError(f"{name}: {column.name} is NaN in row {row}: want null, or whole ns")
    raise DataError(f"{name}: column {column.name} is {column.dtype}: want whole numbers (Int64)")


def _require_text(name: str, column: pl.Series) -> None:
    import polars as pl

    if column.dtype not in (pl.String, pl.Null):
        raise DataError(f"{name}: column {column.name} is {column.dtype}: want text")


def _require_known(
    name: str, column: pl.Series, known: tuple[str, ...], also_wrong: str = ""
) -> None:
    strangers = set(column.unique().drop_nulls()) - set(known)
    if strangers or also_wrong:
        what = also_wrong or repr(min(strangers))
        raise DataError(f"{name}: {column.name} {what} is unknown: want one of {', '.join(known)}")


def _require_sorted(name: str, ts: pl.Series) -> None:
    if ts.null_count():
        raise DataError(f"{name}: ts is null in row {ts.is_null().arg_true()[0]}: want a time")
    back = np.flatnonzero(np.diff(ts.to_numpy()) < 0)
    if back.size:
        row = int(back[0]) + 1
        raise DataError(
            f"{name}: ts goes back in row {row}, from {ts[row - 1]} to {ts[row]}: want rows in "
            "order of time"
        )


def _require_least(name: str, column: pl.Series, least: int, why: str) -> None:
    import polars as pl

    if column.dtype == pl.Null:
        return
    low = (column < least).arg_true()
    if len(low):
        row = low[0]
        raise DataError(f"{name}: {column.name} is {column[row]} in row {row}: {why}")
