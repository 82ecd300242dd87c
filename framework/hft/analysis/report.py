"""`Report`: what `hft.backtest(...)` returns, in a notebook or a script."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hft.analysis import frames, tables
from hft.analysis.equity import equity_path
from hft.analysis.figures import Figures, by_currency, figures_of
from hft.analysis.run_data import RunData, load, save
from hft.analysis.shortfall_figures import shortfall_frame
from hft.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl

FrameName = Literal["orders", "fills", "samples", "equity", "shortfall"]
FRAMES: tuple[FrameName, ...] = ("orders", "fills", "samples", "equity", "shortfall")


class Report:
    """A run with its figures and tables; everything is computed when it is first asked for."""

    def __init__(self, run: RunData) -> None:
        self.run = run

    @classmethod
    def load(cls, folder: Path | str) -> Report:
        """Read a run folder."""
        return cls(load(Path(folder)))

    def save(self, folder: Path | str) -> None:
        """Write the run folder's rows, report.json and report.html."""
        save(self.run, Path(folder))

    @cached_property
    def figures(self) -> Figures:
        """Every figure; the keys are told in `hft.analysis.figures`."""
        return figures_of(self.run)

    def json(self) -> str:
        """Every figure as JSON, the text of report.json."""
        return msgspec.json.format(msgspec.json.encode(self.figures), indent=2).decode()

    @cached_property
    def orders(self) -> pl.DataFrame:
        """One row an order."""
        return frames.orders_frame(self.run)

    @cached_property
    def fills(self) -> pl.DataFrame:
        """One row a fill."""
        return frames.fills_frame(self.run)

    @cached_property
    def samples(self) -> pl.DataFrame:
        """One row an instrument and sample time: touch, position, open orders."""
        return frames.samples_frame(self.run)

    @cached_property
    def equity(self) -> pl.DataFrame:
        """The account in the first instrument's currency, taken apart; amounts are cumulative."""
        import polars as pl

        group = next(iter(by_currency(self.run).values()), [])
        path = equity_path(self.run, group)
        parts = ("ts", "net", "gross", "spread", "inventory", "fees", "funding", "impact")
        return pl.DataFrame({name: getattr(path, name) for name in parts})

    @cached_property
    def shortfall(self) -> pl.DataFrame:
        """One row an order: what carrying it out cost, by stage [its settlement currency]."""
        return shortfall_frame(self.run)

    def to_pandas(self, name: FrameName) -> pd.DataFrame:
        """One of `orders`, `fills`, `samples`, `equity`, `shortfall` as a pandas frame."""
        if name not in FRAMES:
            raise ConfigError(f"a report has the frames {', '.join(FRAMES)}, not {name!r}")
        frame: Any = getattr(self, name)
        return frame.to_pandas()

    def _repr_html_(self) -> str:
        from hft.analysis.html import fragment

        return fragment(self.run, self.figures)

    def __str__(self) -> str:
        run = self.figures["run"]
        words = [
            f"{name.lower()} {value} {unit}".strip()
            for name, value, unit in tables.headline(self.figures)[:2]
        ]
        broken = "" if self.figures["headline"]["identity_holds"] else ", IDENTITY BROKEN"
        fills = self.figures["headline"]["fills"]
        why = f" ({run['error']})" if run["error"] else ""
        what = f"{run['kind']} {run['name']}, {run['status']}{why}"
        return f"{what}: {'; '.join(words)}; {fills} fills{broken}"

    def __repr__(self) -> str:
        return f"<Report {self}>"
