"""What `hft` raises on purpose.

    HftError
    ├── ConfigError            recipe, parameter or option
    ├── StrategyError          the strategy file does not load, or a handler raised
    ├── ModelError             a bundle is missing, damaged or does not fit its features
    ├── DataError              content of a feed or file
    │   ├── SchemaError        columns or types are not the EVENT layout
    │   ├── OutOfOrder         timestamps go back
    │   └── SequenceGap        messages are missing
    ├── OrderError             misuse found before sending: zero lots, unknown order, dead view
    ├── VenueError             adapter or transport
    │   ├── VenueDisconnected
    │   ├── VenueTimeout
    │   └── VenueUnsupported
    └── CoreError              an invariant of the core broke: a bug, please report

A venue's or the risk gate's "no" is not an exception: it arrives as an order in state REJECTED,
with a reason.
"""

from __future__ import annotations


class HftError(Exception):
    """Base of everything raised on purpose; `exit_code` is how a command ends."""

    exit_code = 1


class ConfigError(HftError):
    """A recipe, parameter or option is wrong; the message carries the key path."""

    exit_code = 2


class StrategyError(HftError):
    """The strategy file does not load, or one of its handlers raised."""

    exit_code = 3


class ModelError(HftError):
    """A model bundle is missing, damaged, or does not fit its features."""

    exit_code = 4


class DataError(HftError):
    """Content of a feed or file is wrong; the message names the first bad row."""

    exit_code = 5


class SchemaError(DataError):
    """Columns or types are not the EVENT layout."""


class OutOfOrder(DataError):
    """Timestamps go back."""


class SequenceGap(DataError):
    """Messages are missing."""


class OrderError(HftError):
    """Misuse found before sending: zero lots, an unknown order, a dead view."""

    exit_code = 6


class VenueError(HftError):
    """Adapter or transport failed."""

    exit_code = 7


class VenueDisconnected(VenueError):
    """The venue closed the connection."""


class VenueTimeout(VenueError):
    """The venue did not answer in time."""


class VenueUnsupported(VenueError):
    """The venue cannot do what was asked."""


class CoreError(HftError):
    """An invariant of the core broke: a bug, please report."""

    exit_code = 70
