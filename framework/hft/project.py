"""`hft new`: the layout of a project that uses this framework as a library."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hft.errors import ConfigError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([_-][A-Za-z0-9]+)*")

_PYPROJECT = """\
[project]
name = "{name}"
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["hft-framework"]

[tool.hft]
strategy = "strategies/{module}.py"   # what `hft backtest` and `hft live` run without an argument
"""

_STRATEGY = '''\
"""Quotes both sides around the mid and leans against what it holds."""

from hft import BUY, SELL, Params, Strategy


class {title}Params(Params, frozen=True):
    half_spread_ticks: float = 1.0
    lots: int = 20
    max_lots: int = 200
    skew_ticks: float = 2.0
    """How far both quotes move when the position is at `max_lots`."""


class {title}(Strategy):
    params: {title}Params

    def on_start(self):
        self.every("50ms", self.requote, if_changed=("touch", "position", "orders"))

    def requote(self):
        p = self.params
        for inst in self.instruments.values():
            book, held = self.book(inst), self.position(inst).lots
            if not (book.live and book.two_sided):
                self.cancel_all(inst)
                continue
            fair = book.mid - p.skew_ticks * held / p.max_lots
            # Prices are ticks and may be floats: a bid is rounded down, an ask up.
            buy, sell = min(p.lots, p.max_lots - held), min(p.lots, p.max_lots + held)
            self.quote(inst, BUY, fair - p.half_spread_ticks, max(0, buy))  # 0 lots: pull
            self.quote(inst, SELL, fair + p.half_spread_ticks, max(0, sell))
'''

_RECIPE = """\
# What a run of strategies/{module}.py depends on; every key not given here has a default, and each
# run folder keeps the whole recipe. One key for one run: hft backtest ... --set latency.entry=5ms

[data]
path = "synth"                # or a store made by `hft data import`, or one file

[data.synth]                  # a made-up market: a profit in it proves nothing
seed = 1
duration_s = 600

[latency]
entry = "1ms"                 # order to venue
response = "1ms"              # answer to us

[venue]
maker_fee = 0.0               # of notional; negative: a rebate
taker_fee = 0.0004

[risk]
max_position_lots = 300       # refuses; the strategy's own cap plans

[params]
lots = 20
"""

_README = """\
# {name}

    hft backtest                                    # the strategy that pyproject.toml names
    hft backtest strategies/{module}.py --set half_spread_ticks=2 --seed 7
    hft live --venue sim --duration 30s             # the same strategy on the wall clock
    hft report backtests/runs/<run>                 # figures again; report.html has the pictures

`strategies/` holds strategies, `backtests/NAME.toml` the recipe of `strategies/NAME.py`,
`backtests/runs/` what runs left (not in git).

Your own data: `hft data import csv FILES --map map.toml --store data`, then `path = "data"` under
`[data]` in the recipe.
"""

_GITIGNORE = """\
__pycache__/
.venv/
backtests/runs/
data/
"""


@dataclass(frozen=True, slots=True)
class Project:
    """What was laid out; file paths are relative to `folder`."""

    folder: Path
    files: tuple[str, ...]
    strategy: str


def lay_out(parent: Path, name: str) -> Project:
    """Makes `parent/name` with a strategy and its recipe: whole, or not at all.

    Raises:
        ConfigError: the name is no name for a project, or the folder exists.
    """
    if _NAME.fullmatch(name) is None:
        raise ConfigError(
            f"project name {name!r}: want letters and digits, joined by _ or -, such as my-maker"
        )
    folder = parent / name
    if folder.exists():
        raise ConfigError(f"{folder} exists already: nothing was written")
    files = _files(name)
    try:
        parent.mkdir(parents=True, exist_ok=True)
        whole = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=parent))
        try:
            for path, text in files.items():
                (whole / path).parent.mkdir(exist_ok=True)
                (whole / path).write_text(text)
            whole.chmod(0o755)  # mkdtemp makes it private
            whole.rename(folder)
        except BaseException:
            shutil.rmtree(whole, ignore_errors=True)
            raise
    except OSError as error:
        raise ConfigError(f"cannot make {folder}: {error.strerror}") from error
    return Project(folder, tuple(files), f"strategies/{_module(name)}.py")


def _module(name: str) -> str:
    return name.replace("-", "_").lower()


def _files(name: str) -> dict[str, str]:
    module = _module(name)
    title = "".join(part.capitalize() for part in module.split("_"))
    texts = {
        "pyproject.toml": _PYPROJECT,
        f"strategies/{module}.py": _STRATEGY,
        f"backtests/{module}.toml": _RECIPE,
        "README.md": _README,
        ".gitignore": _GITIGNORE,
    }
    return {p: t.format(name=name, module=module, title=title) for p, t in texts.items()}
