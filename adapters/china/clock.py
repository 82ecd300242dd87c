"""Beijing time, which has kept one offset since 1991, in ns since the epoch."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from hft.data.arrow_columns import Read, integers, times, words_of
from hft.data.text import TextFile
from hft.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

ZONE = "Asia/Shanghai"
DAY_NS = 86_400_000_000_000
OFFSET_NS = int(
    datetime(2000, 1, 1, tzinfo=ZoneInfo(ZONE)).utcoffset().total_seconds() * 1e9  # type: ignore[union-attr]
)
"""Of Beijing before UTC."""

_DATE = re.compile(r"(?<!\d)(19|20)(\d\d)[-._]?([01]\d)[-._]?([0-3]\d)(?!\d)")


def local_day(ts: Ints) -> Ints:
    """Number of the local day of an instant."""
    return np.asarray((ts + OFFSET_NS) // DAY_NS)


def midnight(day: int) -> int:
    """The instant [ns] at which local day number `day` begins."""
    return day * DAY_NS - OFFSET_NS


def date_ns(day: date) -> int:
    """The instant [ns] at which a local day begins."""
    since = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return int(since.timestamp()) * 1_000_000_000 - OFFSET_NS


def date_of(file: TextFile) -> date:
    """The day in a file's name, else in its folder's.

    Raises:
        ConfigError: neither says which day it is of.
    """
    for part in (*reversed(file.member.split("/")), file.path.name, file.path.parent.name):
        if match := _DATE.search(part):
            century, year, month, day = match.groups()
            try:
                return date(int(century + year), int(month), int(day))
            except ValueError:
                continue
    raise ConfigError(
        f"{file.name}: holds times without a date; give --date YYYY-MM-DD, or a name of the file "
        "or its folder with the day as YYYYMMDD"
    )


def read_dates(column: pa.Array) -> Read:
    """Days such as 2023.07.11, 2023-07-11 or 20230711, as the instants they begin."""
    words, at = words_of(column)
    values, bad = np.zeros(len(words), np.int64), np.ones(len(words), bool)
    for index, word in enumerate(words):
        match = _DATE.fullmatch(word)
        if match:
            century, year, month, day = match.groups()
            try:
                values[index] = date_ns(date(int(century + year), int(month), int(day)))
                bad[index] = False
            except ValueError:
                pass
    return values[at], bad[at]


def read_times(column: pa.Array) -> Read:
    """Times of day such as 09:15:00.020, in ns after midnight."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.cast(column, pa.string())
    return times(pc.binary_join_element_wise(pa.scalar("1970-01-01"), text, "T"), "iso")


def read_stamps(column: pa.Array) -> Read:
    """Instants such as 2023.07.11T09:25:21.401 or 2015-12-25 09:20:00.100."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.cast(column, pa.string())
    if len(text) and (text[0].as_py() or "")[4:5] == ".":
        text = pc.replace_substring(text, ".", "-", max_replacements=2)
    return times(text, "iso", add_ns=-OFFSET_NS)


def read_digits(column: pa.Array) -> Read:
    """Times of day such as 93009000 (HHMMSSmmm), in ns after midnight."""
    values, bad = integers(column)
    return digits_ns(values, bad)


def digits_ns(hhmmssmmm: Ints, bad: NDArray[np.bool_] | None = None) -> Read:
    """The same of numbers."""
    seconds, ms = np.divmod(hhmmssmmm, 1000)
    minutes, second = np.divmod(seconds, 100)
    hour, minute = np.divmod(minutes, 100)
    wrong = (hour < 0) | (hour > 23) | (minute > 59) | (second > 59)
    ns = (((hour * 60 + minute) * 60 + second) * 1000 + ms) * 1_000_000
    return ns, wrong if bad is None else wrong | bad


def number_dates(yyyymmdd: Ints) -> Read:
    """Days as numbers, such as 20200901, as the instants they begin."""
    different, at = np.unique(yyyymmdd, return_inverse=True)
    values, bad = np.zeros(len(different), np.int64), np.zeros(len(different), bool)
    for index, day in enumerate(different.tolist()):
        try:
            values[index] = date_ns(date(day // 10_000, day // 100 % 100, day % 100))
        except ValueError:
            bad[index] = True
    return values[at], bad[at]
