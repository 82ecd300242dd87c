"""One engine for replay and live trading.

    from hft import BUY, SELL, Features, Model, OnTouch, Params, Strategy

Names are imported on first use, so that `import hft` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hft.analysis.records import FillReason as FillReason
    from hft.analysis.records import OrderState as OrderState
    from hft.analysis.records import Reason as Reason
    from hft.analysis.report import Report as Report
    from hft.engine import backtest as backtest
    from hft.features import Every as Every
    from hft.features import Features as Features
    from hft.features import OnPacket as OnPacket
    from hft.features import OnTouch as OnTouch
    from hft.features import OnTrade as OnTrade
    from hft.features import feature as feature
    from hft.inference.model import Model as Model
    from hft.strategy import Params as Params
    from hft.strategy import Strategy as Strategy
    from hft.types import BUY as BUY
    from hft.types import EVENT as EVENT
    from hft.types import FOK as FOK
    from hft.types import GTC as GTC
    from hft.types import IOC as IOC
    from hft.types import POST_ONLY as POST_ONLY
    from hft.types import SELL as SELL
    from hft.types import Flag as Flag
    from hft.types import InstrumentSpec as InstrumentSpec
    from hft.types import Kind as Kind

__version__ = "0.1.0"

_HOMES = {
    "hft.analysis.records": ("FillReason", "OrderState", "Reason"),
    "hft.analysis.report": ("Report",),
    "hft.engine": ("backtest",),
    "hft.features": ("Every", "Features", "OnPacket", "OnTouch", "OnTrade", "feature"),
    "hft.inference.model": ("Model",),
    "hft.strategy": ("Params", "Strategy"),
    "hft.types": (
        "BUY",
        "EVENT",
        "FOK",
        "GTC",
        "IOC",
        "POST_ONLY",
        "SELL",
        "Flag",
        "InstrumentSpec",
        "Kind",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'hft' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
