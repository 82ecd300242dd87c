"""What the formats of Chinese venues share: text files in blocks, Beijing time, trading sessions.

No format by itself; used by shanghai, shenzhen, cffex and wondertrader.
"""

from __future__ import annotations

from hft.data.sources import Request
from hft.errors import ConfigError
from hft.types import InstrumentSpec


def inferred(request: Request, spec: InstrumentSpec, *names: str) -> list[str]:
    """Facts that nobody gave, in words."""
    return [f"{name} {getattr(spec, name):g}" for name in names if name not in request.facts]


def want_asked_for(request: Request, symbol: str, where: str) -> None:
    """Refuse a file of a contract that was not asked for."""
    wanted = request.symbols()
    if wanted and symbol not in wanted:
        raise ConfigError(f"{where}: holds {symbol}, no {', '.join(wanted)}")
